"""Builds the thinker of one agent. The only module that knows which class fills which role."""

from __future__ import annotations

import logging
import re
from typing import Protocol

from annabelle.core.contract import AgentProfile, ThinkerBoot
from annabelle.core.errors import StorageTrouble, Unavailable
from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.core.trace import TraceFile
from annabelle.durable.engine import Durable
from annabelle.embeddings import Embedder, EmbeddingConfig, make_embedder
from annabelle.embeddings.metering import EmbeddingMeter
from annabelle.llm.failover import ProviderHealth
from annabelle.llm.service import ModelService
from annabelle.skills.playbook_folder import PlaybookFolder
from annabelle.skills.skill_folder import SkillFolder
from annabelle.store.database import Database, sqlite_url
from annabelle.thinker.compression.context_compressor import ContextCompressor
from annabelle.thinker.compression.model_notes import NoteTaker
from annabelle.thinker.compression.workspace import Workspaces
from annabelle.thinker.costs import CostMeter
from annabelle.thinker.engine import DurableEngine, WorkflowEngine
from annabelle.thinker.hub_client import ThinkerHubClient
from annabelle.thinker.learning.fact_learner import FactLearner
from annabelle.thinker.loop.deps import ThinkerDeps
from annabelle.thinker.loop.direct_call import DirectCalls
from annabelle.thinker.loop.model_call import next_generation
from annabelle.thinker.order_reader import OrderReader
from annabelle.thinker.prompt.clock import parse_time_zone
from annabelle.thinker.prompt.history import HistoryRelevance
from annabelle.thinker.prompt.memory_recall import MemoryRecall
from annabelle.thinker.prompt.persona import PersonaResolver
from annabelle.thinker.prompt.prompt import LayeredPromptBuilder
from annabelle.thinker.prompt.skill_offer import SkillOffers
from annabelle.thinker.prompt.tool_hints import ToolPatterns
from annabelle.thinker.selection.hybrid_selector import HybridSelector
from annabelle.thinker.session.archive_search import ArchiveSearch
from annabelle.thinker.session.archiver import SessionArchiver
from annabelle.thinker.session.compaction import CompactionRules, Compactor
from annabelle.thinker.session.conversations import Conversations, EarlierDeps
from annabelle.thinker.session.database_store import DatabaseSessionStore
from annabelle.thinker.session.file_store import FileSessionStore
from annabelle.thinker.session.session_store import SessionStore
from annabelle.thinker.session.summariser import Summariser
from annabelle.thinker.turn_registry import TurnRegistry


class ClosableModel(Protocol):
    """What a thinker needs of its model service besides answers."""

    def health(self) -> list[ProviderHealth]: ...

    async def close(self) -> None: ...


class Thinker:
    """One agent's thinker. Not ready before `open` has returned or after `close` was called."""

    def __init__(
        self, deps: ThinkerDeps, turns: TurnRegistry, learning: FactLearner, model: ClosableModel, embedder: Embedder
    ) -> None:
        self.deps, self.turns, self.learning = deps, turns, learning
        self.orders = OrderReader(deps)
        self._model, self._embedder = model, embedder
        self._ready = False

    def health(self) -> JsonObject:
        return {
            "status": "ok",
            "agent_id": self.deps.profile.agent_id,
            "turns": self.turns.running_count,
            "persona": self.deps.prompt_builder.persona_source(),
            "thinking": self.deps.compressor.status(),
            "providers": [provider.to_json() for provider in self._model.health()],
        }

    def require_ready(self) -> None:
        if not self._ready:
            raise Unavailable("This thinker is not ready yet.", hint="Ask again in a moment.")

    async def open(self) -> None:
        """Start the durable engine, which resumes turns an earlier process left unfinished."""
        await self.deps.engine.launch()
        await self.deps.sessions.open()
        self._ready = True

    async def close(self, grace: float) -> None:
        """Let running steps end within `grace` seconds; what is unfinished is resumed by the next process."""
        self._ready = False
        await self.turns.stop(grace)
        await self.deps.engine.close()
        await self.deps.sessions.close()
        await self._model.close()
        await self._embedder.close()


def make_conversations(
    store: SessionStore,
    engine: WorkflowEngine,
    summariser: Summariser,
    embedder: Embedder,
    settings: Settings,
    trace: TraceFile,
) -> Conversations:
    """The sessions of one agent. Call before the engine is launched, because it registers a workflow."""
    return Conversations(
        store,
        Compactor(store, engine, summariser, CompactionRules.from_settings(settings), trace),
        SessionArchiver(store, summariser, settings.agent_session_timeout, trace),
        EarlierDeps(
            ArchiveSearch(embedder), settings.agent_history_summary_count, parse_time_zone(settings.user_timezone)
        ),
    )


async def build_thinker(boot: ThinkerBoot, home: Home, settings: Settings, redact: Redactor) -> Thinker:
    """Build all parts; nothing runs yet."""
    profile, folder = boot.agent, home.agent(boot.agent.agent_id)
    time_zone = parse_time_zone(settings.user_timezone)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageTrouble(f"The folder {folder} can not be made: {error.strerror}.") from error
    hub = ThinkerHubClient.connect_to(boot.hub_url, boot.secret)
    trace = TraceFile(home.traces_file, "thinker", redact)
    model = ModelService(settings, home, hub, profile, trace, redact=redact)
    engine, costs = DurableEngine(_make_durable(profile, home, settings)), CostMeter(hub.cost_status)
    metering = EmbeddingMeter(hub, profile.agent_id)
    embedder = make_embedder(EmbeddingConfig.from_settings(settings), home.embedding_cache, metering)
    store = await _open_session_store(profile, home, settings)
    skills = SkillFolder.open_home(home)
    deps = ThinkerDeps(
        profile=profile,
        settings=settings,
        generation=next_generation(folder),
        engine=engine,
        model=model,
        hub=hub,
        sessions=make_conversations(store, engine, Summariser(model, costs), embedder, settings, trace),
        prompt_builder=LayeredPromptBuilder(
            PersonaResolver(folder, profile, settings.user_name, settings.user_language),
            time_zone,
            HistoryRelevance(embedder),
            settings.history_relevance_threshold,
        ),
        memory_recall=MemoryRecall(hub),
        selector=HybridSelector(settings, embedder, _resolve_temperature(profile, settings)),
        playbooks=PlaybookFolder(home.playbooks, skills),
        compressor=ContextCompressor(
            profile.thinking,
            note_taker=NoteTaker(engine, model, costs, settings.llm_summary_timeout_seconds),
            embedder=embedder,
        ),
        trace=trace,
        costs=costs,
        workspaces=Workspaces(folder, profile.thinking, hub),
        direct_calls=DirectCalls(home.phrases_file) if settings.message_templates else None,
        skills=SkillOffers(skills, hub),
        # A temporary agent is asked once.
        tool_patterns=ToolPatterns(folder) if profile.thinking.tool_hints and not profile.temporary else None,
    )
    logging.getLogger().addHandler(deps.notices)
    turns = TurnRegistry(deps)
    hub.on_wait(turns.notify_running)
    return Thinker(deps, turns, FactLearner(deps), model, embedder)


def _make_durable(profile: AgentProfile, home: Home, settings: Settings) -> Durable:
    shared = settings.database_url
    own_file = home.agent(profile.agent_id) / "turns.db"
    return Durable(
        name="thinker",
        # The same after a restart, so that only the next process of this agent resumes unfinished turns.
        executor_id=f"thinker-{profile.agent_id}",
        database_url=shared.get_secret_value() if shared is not None else sqlite_url(own_file),
        schema="turns_" + re.sub(r"[^a-z0-9_]", "_", profile.agent_id.lower())[:50],
        synchronous=settings.sqlite_synchronous,
    )


async def _open_session_store(profile: AgentProfile, home: Home, settings: Settings) -> SessionStore:
    if settings.database_url is not None:
        database = await Database.open(settings.database_url.get_secret_value())
        return DatabaseSessionStore(database, profile.agent_id)
    folder = home.agent(profile.agent_id) / "sessions"
    return FileSessionStore(folder, profile.agent_id, synchronous=settings.sqlite_synchronous == "FULL")


def _resolve_temperature(profile: AgentProfile, settings: Settings) -> float:
    return settings.thinker_temperature if profile.temperature is None else profile.temperature
