"""Puts a thinker together for one agent: the only place that knows which class fills which role."""

from __future__ import annotations

import re

from annabelle.core.contract import AgentProfile, ThinkerBoot
from annabelle.core.errors import StorageTrouble
from annabelle.core.home import Home
from annabelle.core.redact import Redactor
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile
from annabelle.durable.durable import Durable
from annabelle.embeddings import EmbeddingConfig, make_embedder
from annabelle.embeddings.books import Books
from annabelle.llm.service import ModelService
from annabelle.skills.library import PlaybookFolder
from annabelle.store.database import Database, sqlite_url
from annabelle.thinker.compress.notes import NoteTaker
from annabelle.thinker.compress.phase import ThinkingPhase
from annabelle.thinker.compress.workspaces import Workspaces
from annabelle.thinker.context.clock import zone
from annabelle.thinker.context.closeness import Closeness
from annabelle.thinker.context.persona import Persona
from annabelle.thinker.context.prompt import LayeredContext
from annabelle.thinker.context.recollection import Recollection
from annabelle.thinker.costs import CostMeter
from annabelle.thinker.durable_engine import DurableEngine
from annabelle.thinker.generation import next_generation
from annabelle.thinker.hub.client import HubClient
from annabelle.thinker.learn.learning import Learning
from annabelle.thinker.loop.bench import Workbench
from annabelle.thinker.mind import Mind
from annabelle.thinker.select.hybrid import HybridSelector
from annabelle.thinker.session.files import SessionFiles
from annabelle.thinker.session.make import conversations
from annabelle.thinker.session.port import SessionStore
from annabelle.thinker.session.summariser import Summariser
from annabelle.thinker.session.tables import SessionTables
from annabelle.thinker.turns import Turns


async def assemble(boot: ThinkerBoot, home: Home, settings: Settings, redact: Redactor) -> Mind:
    """Every part in its place, nothing running yet."""
    profile, folder = boot.agent, home.agent(boot.agent.agent_id)
    where = zone(settings.user_timezone)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageTrouble(f"The folder {folder} can not be made: {error.strerror}.") from error
    hub = HubClient.at(boot.hub_url, boot.secret)
    trace = TraceFile(home.traces_file, "thinker", redact)
    model = ModelService(settings, home, hub, profile, trace, redact=redact)
    engine, costs = DurableEngine(_durable(profile, home, settings)), CostMeter(hub.cost_status)
    books = Books(hub, profile.agent_id)
    embedder = make_embedder(EmbeddingConfig.from_settings(settings), home.embedding_cache, books)
    store = await _sessions(profile, home, settings)
    bench = Workbench(
        profile=profile,
        settings=settings,
        generation=next_generation(folder),
        engine=engine,
        model=model,
        hub=hub,
        sessions=conversations(store, engine, Summariser(model, costs), embedder, settings, trace),
        context=LayeredContext(
            Persona(folder, profile, settings.user_name),
            where,
            Closeness(embedder),
            settings.history_relevance_threshold,
        ),
        recollection=Recollection(hub),
        selector=HybridSelector(settings, embedder, _temperature(profile, settings)),
        playbooks=PlaybookFolder(home.playbooks),
        thinking=ThinkingPhase(
            profile.thinking,
            note_taker=NoteTaker(engine, model, costs, settings.llm_summary_timeout_seconds),
            embedder=embedder,
        ),
        trace=trace,
        costs=costs,
        workspaces=Workspaces(folder, profile.thinking, hub),
    )
    turns = Turns(bench)
    hub.tell = turns.tell_all
    return Mind(bench, turns, Learning(bench), model, embedder)


def _durable(profile: AgentProfile, home: Home, settings: Settings) -> Durable:
    shared = settings.database_url
    own_file = home.agent(profile.agent_id) / "turns.db"
    return Durable(
        name="thinker",
        # The same over restarts, so that the next process of this agent, and no other, takes up what is unfinished.
        executor_id=f"thinker-{profile.agent_id}",
        database_url=shared.get_secret_value() if shared is not None else sqlite_url(own_file),
        schema="turns_" + re.sub(r"[^a-z0-9_]", "_", profile.agent_id.lower())[:50],
        synchronous=settings.sqlite_synchronous,
    )


async def _sessions(profile: AgentProfile, home: Home, settings: Settings) -> SessionStore:
    if settings.database_url is not None:
        database = await Database.open(settings.database_url.get_secret_value())
        return SessionTables(database, profile.agent_id)
    folder = home.agent(profile.agent_id) / "sessions"
    return SessionFiles(folder, profile.agent_id, synchronous=settings.sqlite_synchronous == "FULL")


def _temperature(profile: AgentProfile, settings: Settings) -> float:
    return settings.thinker_temperature if profile.temperature is None else profile.temperature
