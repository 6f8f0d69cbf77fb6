"""The durable workflow that extracts facts from conversations, and its tool (MEM-07)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from pydantic import BaseModel

from annabelle.core.backoff import backoff_seconds
from annabelle.core.contract import ExtractBrief, ExtractResult, LearntFact, PastTurn
from annabelle.core.errors import (
    AgentPaused,
    AnnabelleError,
    OutcomeUnknown,
    ScannerDown,
    StorageTrouble,
    ToolTimeout,
    Unavailable,
)
from annabelle.core.ids import new_id
from annabelle.core.models import FrozenModel
from annabelle.core.result_text import for_model
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trace import TraceFile, use_trace
from annabelle.core.trust import Trust
from annabelle.durable.engine import Durable
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.agents.thinker_calls import ThinkerQuestions
from annabelle.hub.memory.memory_client import MemoryClient, MemoryOwner, resolve_memory_owner
from annabelle.toolbox.catalogue import OWN_WORDS, WRITES_ONCE, NativeTool, native_tool, number_parameter

_log = logging.getLogger(__name__)
LEARN_FACTS: Final = "learn_facts"
TURNS_AT_ONCE: Final = 10
KNOWN_FACTS: Final = 30
FEWEST_CHARACTERS: Final = 50
TRIES: Final = 10
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 300.0
# Every step is idempotent, so an unknown outcome is retried too.
_PASSING = (Unavailable, StorageTrouble, ToolTimeout, OutcomeUnknown, ScannerDown)


class ExtractionRequest(FrozenModel):
    """Extract facts from the last unread turns, of one thread or of all. `tries` is 1 if a caller waits."""

    learn_id: str
    user_id: str
    agent_id: str
    trace_id: str
    thread_id: str | None = None
    limit: int = TURNS_AT_ONCE
    tries: int = TRIES

    @property
    def owner(self) -> MemoryOwner:
        return MemoryOwner(self.user_id, self.agent_id, thread_id=self.thread_id, trace_id=self.trace_id)


class ExtractedFactRecord(BaseModel):
    """A fact that was learnt. `status` says whether it is new."""

    fact_id: int
    fact: str
    status: str
    trust: Trust = "trusted"


class ExtractionOutcome(BaseModel):
    """What came of a run."""

    turns: int = 0
    facts: tuple[ExtractedFactRecord, ...] = ()
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactExtractionWorkflow:
    durable: Durable
    memory: MemoryClient
    thinker: ThinkerQuestions
    traces: TraceFile
    settings: Settings
    ready: Callable[[], Awaitable[None]]

    def __post_init__(self) -> None:
        self.durable.workflow(LEARN_FACTS)(self._run)

    async def begin(self, wanted: ExtractionRequest) -> None:
        """Start a run. It is on disk when this returns; the same id again changes nothing."""
        await self.durable.start(LEARN_FACTS, wanted.learn_id, wanted.model_dump(mode="json"))

    async def run_for_caller(
        self, owned: MemoryOwner, call_id: str | None, limit: int, timeout: float
    ) -> ExtractionOutcome:
        """Outcome of one try over all threads, for somebody who waits. It goes on when nobody waits for it."""
        wanted = ExtractionRequest(
            learn_id=f"learn:{call_id or new_id('call')}",
            user_id=owned.user_id,
            agent_id=owned.agent_id,
            trace_id=owned.trace_id or new_id("tr"),
            limit=limit,
            tries=1,
        )
        await self.begin(wanted)
        return await self.result(wanted.learn_id, timeout)

    async def result(self, learn_id: str, timeout: float) -> ExtractionOutcome:
        """Outcome of a run. Raises Unavailable on timeout."""
        return ExtractionOutcome.model_validate(await self.durable.result(learn_id, timeout))

    async def _run(self, argument: JsonObject) -> JsonObject:
        wanted = ExtractionRequest.model_validate(argument)
        with use_trace(wanted.trace_id):
            await self.ready()
            done = ExtractionOutcome()
            for batch in range(1, -(-wanted.limit // TURNS_AT_ONCE) + 1):
                part = await self._extract_batch(wanted, batch, wanted.limit - done.turns)
                done = ExtractionOutcome(
                    turns=done.turns + part.turns, facts=done.facts + part.facts, refused=part.refused or done.refused
                )
                if part.turns < TURNS_AT_ONCE:
                    break
            return done.model_dump(mode="json")

    async def _extract_batch(self, wanted: ExtractionRequest, batch: int, limit: int) -> ExtractionOutcome:
        turns, known = await self._gather(wanted, min(limit, TURNS_AT_ONCE))
        if not _is_worth_reading(turns):
            if turns and wanted.thread_id is None:
                # Requested by a person: mark these turns, or they would hide the earlier ones.
                await self._retry_step(wanted, "mark", lambda: self._mark(wanted, turns))
            return ExtractionOutcome(turns=len(turns) if wanted.thread_id is None else 0)
        try:
            found = await self._ask(wanted, batch, turns, known)
        except AgentPaused as paused:
            # Nothing is marked, so the next idle period of the thread finds these turns again.
            self.traces.write("facts.put_off", {"id": wanted.learn_id, "reason": paused.message})
            return ExtractionOutcome(refused=paused.message)
        if found.unfit:
            self.traces.write("facts.put_off", {"id": wanted.learn_id, "reason": found.refused})
            return ExtractionOutcome(refused=found.refused)
        kept = [fact for fact in [await self._store(wanted, one, turns) for one in found.facts] if fact is not None]
        await self._retry_step(wanted, "mark", lambda: self._mark(wanted, turns))
        self.traces.write(
            "facts.learnt",
            {"id": wanted.learn_id, "turns": len(turns), "facts": len(kept), "refused": found.refused},
        )
        return ExtractionOutcome(turns=len(turns), facts=tuple(kept), refused=found.refused)

    async def _gather(self, wanted: ExtractionRequest, limit: int) -> tuple[list[PastTurn], tuple[str, ...]]:
        memory = self.memory

        async def gather() -> JsonObject:
            turns = await memory.list_unread(wanted.owner, limit, everywhere=wanted.thread_id is None)
            known = await memory.list_known_facts(wanted.owner, KNOWN_FACTS)
            return {"turns": [turn.model_dump(mode="json") for turn in turns], "known": list(known)}

        gathered = cast("JsonObject", await self._retry_step(wanted, "gather", gather))
        turns = [PastTurn.model_validate(turn) for turn in cast("list[object]", gathered["turns"])]
        return turns, tuple(cast("list[str]", gathered["known"]))

    async def _ask(
        self, wanted: ExtractionRequest, batch: int, turns: Sequence[PastTurn], known: tuple[str, ...]
    ) -> ExtractResult:
        """The model's answer. An unusable one is requested once more."""
        thinking, settings = self.thinker, self.settings
        found = ExtractResult()
        for attempt in (1, 2):
            brief = ExtractBrief(
                extraction_id=f"{wanted.learn_id}:{batch}.{attempt}",
                user_id=wanted.user_id,
                trace_id=wanted.trace_id,
                turns=tuple(turns),
                known=known,
                min_confidence=settings.fact_extraction_confidence,
            )

            async def ask(brief: ExtractBrief = brief) -> JsonObject:
                return (await thinking.extract(wanted.agent_id, brief)).model_dump(mode="json")

            found = ExtractResult.model_validate(await self._retry_step(wanted, "ask", ask))
            if found.refused is None or found.unfit:
                break
            _log.warning("Nothing was learnt from the answer to %s: %s", brief.extraction_id, found.refused)
        return found

    async def _store(
        self, wanted: ExtractionRequest, learnt: LearntFact, turns: Sequence[PastTurn]
    ) -> ExtractedFactRecord | None:
        source = next((turn for turn in turns if turn.conversation_id == learnt.conversation_id), None)
        if source is None:
            return None  # the model may only quote turns it was shown
        memory = self.memory

        async def store() -> JsonObject:
            stored = await memory.store_fact(wanted.owner, learnt, source.message_id)
            kept = ExtractedFactRecord(
                fact_id=stored.fact_id, fact=learnt.fact, status=stored.status, trust=learnt.trust
            )
            return kept.model_dump(mode="json")

        try:
            return ExtractedFactRecord.model_validate(await self._retry_step(wanted, "store", store))
        except _PASSING:
            raise
        except AnnabelleError as refusal:
            # The memory refuses secrets. Its message names the kind, never the words.
            self.traces.write("facts.refused", {"id": wanted.learn_id, "reason": refusal.message})
            return None

    async def _mark(self, wanted: ExtractionRequest, turns: Sequence[PastTurn]) -> None:
        await self.memory.mark_read(wanted.owner, [turn.conversation_id for turn in turns])

    async def _retry_step(self, wanted: ExtractionRequest, name: str, work: Callable[[], Awaitable[object]]) -> object:
        """A durable step, retried with growing delays while a service is unavailable."""
        for failed in range(1, wanted.tries):
            try:
                return await self.durable.step(name, work)
            except AgentPaused:
                raise
            except _PASSING as trouble:
                wait = backoff_seconds(failed, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS)
                _log.warning("Learning waits for %.0f s: %s", wait, trouble.message)
            await self.durable.sleep(wait)
        return await self.durable.step(name, work)


def request_for_thread(thread_id: str, user_id: str, agent_id: str, last_message_id: str) -> ExtractionRequest:
    """The run for an idle thread, one per last message."""
    return ExtractionRequest(
        learn_id=f"learn:{last_message_id}",
        user_id=user_id,
        agent_id=agent_id,
        trace_id=new_id("tr"),
        thread_id=thread_id,
    )


def _is_worth_reading(turns: Sequence[PastTurn]) -> bool:
    return sum(len(turn.user.strip()) for turn in turns) >= FEWEST_CHARACTERS


_TOOL_SECONDS = 600.0


def backfill_tool(learn: FactExtractionWorkflow, agents: AgentRegistry) -> NativeTool:
    """The same call id finds the same run."""

    @native_tool(
        "memory_backfill_extract_facts",
        "Learn facts from stored conversations that nobody has looked through for facts yet.",
        {
            "agent_id": {"type": "string", "maxLength": 100, "description": "Whose memory; by default your own"},
            "batch_size": number_parameter(1, 50, 10, "How many conversations to look through"),
        },
        annotations=WRITES_ONCE,
        group="Memory",
        timeout_seconds=_TOOL_SECONDS,
        scan=OWN_WORDS,
        answers=AnnabelleError,
    )
    async def backfill(arguments: JsonObject, context: CallContext) -> ToolResult:
        owned = resolve_memory_owner(context, cast("str | None", arguments.get("agent_id")), agents)
        learnt = await learn.run_for_caller(
            owned, context.call_id, cast("int", arguments.get("batch_size", 10)), _TOOL_SECONDS - 10
        )
        # The result contains the facts, which may be somebody else's words.
        trust: Trust = "untrusted" if any(fact.trust == "untrusted" for fact in learnt.facts) else "trusted"
        structured: JsonObject = {**learnt.model_dump(mode="json"), "trust": trust}
        return ToolResult(text=describe_outcome(learnt), structured=structured, trust=trust)

    return backfill


def describe_outcome(learnt: ExtractionOutcome) -> str:
    if learnt.refused is not None and not learnt.turns:
        return f"Nothing was learnt: {learnt.refused}"
    if not learnt.turns:
        return "There is no conversation that was not looked through yet."
    new = [fact for fact in learnt.facts if fact.status != "known"]
    lines = [f"{learnt.turns} conversations were looked through; {len(new)} new facts."]
    return "\n".join([*lines, *(f"- {fact.fact}{for_model(f' (fact {fact.fact_id})')}" for fact in new)])
