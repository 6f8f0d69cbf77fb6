"""The durable flow that learns facts from what was said: read, ask the model, store, note what was read (MEM-07).

Each part is a recorded step, so a killed hub goes on behind the last one. The model's answer is recorded before
anything is stored; storing a fact that is there already changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from pydantic import BaseModel, ConfigDict

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
from annabelle.core.memory import Trust
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.core.trace import TraceFile, traced
from annabelle.durable.durable import Durable
from annabelle.hub.memory.memory_tools import MemoryTools, Owned
from annabelle.hub.memory.thinking import Thinking

_log = logging.getLogger(__name__)
LEARN_FACTS: Final = "learn_facts"
TURNS_AT_ONCE: Final = 10
KNOWN_FACTS: Final = 30
FEWEST_CHARACTERS: Final = 50
TRIES: Final = 10
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 300.0
# Nothing here has a second effect when it is done again, so an unknown outcome is tried again too.
_PASSING = (Unavailable, StorageTrouble, ToolTimeout, OutcomeUnknown, ScannerDown)


class ToLearn(BaseModel):
    """What one run is about: the last turns that were never read, of a thread, or without one of all of them.

    When somebody waits for it, one try has to do.
    """

    model_config = ConfigDict(frozen=True)

    learn_id: str
    user_id: str
    agent_id: str
    trace_id: str
    thread_id: str | None = None
    limit: int = TURNS_AT_ONCE
    tries: int = TRIES

    @property
    def owned(self) -> Owned:
        return Owned(self.user_id, self.agent_id, thread_id=self.thread_id, trace_id=self.trace_id)


class KeptFact(BaseModel):
    """A fact that was learnt. `status` says whether it is new."""

    fact_id: int
    fact: str
    status: str
    trust: Trust = "trusted"


class Learnt(BaseModel):
    """What came of a run."""

    turns: int = 0
    facts: tuple[KeptFact, ...] = ()
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class LearnServices:
    """What the flow works with."""

    durable: Durable
    memory: MemoryTools
    thinking: Thinking
    traces: TraceFile
    settings: Settings
    ready: Callable[[], Awaitable[None]]


class LearnFacts:
    """Starts runs, and is the workflow they execute."""

    def __init__(self, services: LearnServices) -> None:
        self._services = services
        services.durable.workflow(LEARN_FACTS)(self._run)

    async def begin(self, wanted: ToLearn) -> None:
        """Begin a run; it is on disk when this returns. The same id again changes nothing."""
        await self._services.durable.start(LEARN_FACTS, wanted.learn_id, wanted.model_dump(mode="json"))

    async def result(self, learn_id: str, timeout: float) -> Learnt:
        """What a run came to; Unavailable when it takes longer."""
        return Learnt.model_validate(await self._services.durable.result(learn_id, timeout))

    async def _run(self, argument: JsonObject) -> JsonObject:
        wanted = ToLearn.model_validate(argument)
        with traced(wanted.trace_id):
            await self._services.ready()
            done = Learnt()
            for batch in range(1, -(-wanted.limit // TURNS_AT_ONCE) + 1):
                part = await self._learn_some(wanted, batch, wanted.limit - done.turns)
                done = Learnt(
                    turns=done.turns + part.turns, facts=done.facts + part.facts, refused=part.refused or done.refused
                )
                if part.turns < TURNS_AT_ONCE:
                    break
            return done.model_dump(mode="json")

    async def _learn_some(self, wanted: ToLearn, batch: int, limit: int) -> Learnt:
        turns, known = await self._gather(wanted, min(limit, TURNS_AT_ONCE))
        if not _worth_reading(turns):
            if turns and wanted.thread_id is None:
                # Asked for by a person: what says nothing must not stand in the way of what was said before it.
                await self._insist(wanted, "mark", lambda: self._mark(wanted, turns))
            return Learnt(turns=len(turns) if wanted.thread_id is None else 0)
        try:
            found = await self._ask(wanted, batch, turns, known)
        except AgentPaused as paused:
            # Nothing is marked: the next rest of the thread finds these turns again.
            self._services.traces.write("facts.put_off", {"id": wanted.learn_id, "reason": paused.message})
            return Learnt(refused=paused.message)
        if found.unfit:
            self._services.traces.write("facts.put_off", {"id": wanted.learn_id, "reason": found.refused})
            return Learnt(refused=found.refused)
        kept = [fact for fact in [await self._store(wanted, one, turns) for one in found.facts] if fact is not None]
        await self._insist(wanted, "mark", lambda: self._mark(wanted, turns))
        self._services.traces.write(
            "facts.learnt",
            {"id": wanted.learn_id, "turns": len(turns), "facts": len(kept), "refused": found.refused},
        )
        return Learnt(turns=len(turns), facts=tuple(kept), refused=found.refused)

    async def _gather(self, wanted: ToLearn, limit: int) -> tuple[list[PastTurn], tuple[str, ...]]:
        memory = self._services.memory

        async def gather() -> JsonObject:
            turns = await memory.unread(wanted.owned, limit, everywhere=wanted.thread_id is None)
            known = await memory.known(wanted.owned, KNOWN_FACTS)
            return {"turns": [turn.model_dump(mode="json") for turn in turns], "known": list(known)}

        gathered = cast("JsonObject", await self._insist(wanted, "gather", gather))
        turns = [PastTurn.model_validate(turn) for turn in cast("list[object]", gathered["turns"])]
        return turns, tuple(cast("list[str]", gathered["known"]))

    async def _ask(
        self, wanted: ToLearn, batch: int, turns: Sequence[PastTurn], known: tuple[str, ...]
    ) -> ExtractResult:
        """The model's answer; one that is no use is asked for once more, and then it stays at that."""
        thinking, settings = self._services.thinking, self._services.settings
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

            found = ExtractResult.model_validate(await self._insist(wanted, "ask", ask))
            if found.refused is None or found.unfit:
                break
            _log.warning("Nothing was learnt from the answer to %s: %s", brief.extraction_id, found.refused)
        return found

    async def _store(self, wanted: ToLearn, learnt: LearntFact, turns: Sequence[PastTurn]) -> KeptFact | None:
        source = next((turn for turn in turns if turn.conversation_id == learnt.conversation_id), None)
        if source is None:
            return None  # the model may only quote what it was shown
        memory = self._services.memory

        async def store() -> JsonObject:
            stored = await memory.store_fact(wanted.owned, learnt, source.message_id)
            kept = KeptFact(fact_id=stored.fact_id, fact=learnt.fact, status=stored.status, trust=learnt.trust)
            return kept.model_dump(mode="json")

        try:
            return KeptFact.model_validate(await self._insist(wanted, "store", store))
        except _PASSING:
            raise
        except AnnabelleError as refusal:
            # The memory says no to what looks like a secret, and says which kind it is, never the words.
            self._services.traces.write("facts.refused", {"id": wanted.learn_id, "reason": refusal.message})
            return None

    async def _mark(self, wanted: ToLearn, turns: Sequence[PastTurn]) -> None:
        await self._services.memory.mark_read(wanted.owned, [turn.conversation_id for turn in turns])

    async def _insist(self, wanted: ToLearn, name: str, work: Callable[[], Awaitable[object]]) -> object:
        """A step that is tried again, longer and longer, while a part is away; over a crash too."""
        wait = FIRST_WAIT_SECONDS
        for _ in range(wanted.tries - 1):
            try:
                return await self._services.durable.step(name, work)
            except AgentPaused:
                raise
            except _PASSING as trouble:
                _log.warning("Learning waits for %.0f s: %s", wait, trouble.message)
            await self._services.durable.sleep(wait)
            wait = min(LONGEST_WAIT_SECONDS, 2 * wait)
        return await self._services.durable.step(name, work)


def of_thread(thread_id: str, user_id: str, agent_id: str, last_message_id: str) -> ToLearn:
    """The run for a thread that has rested; there is one per last message."""
    return ToLearn(
        learn_id=f"learn:{last_message_id}",
        user_id=user_id,
        agent_id=agent_id,
        trace_id=new_id("tr"),
        thread_id=thread_id,
    )


def _worth_reading(turns: Sequence[PastTurn]) -> bool:
    return sum(len(turn.user.strip()) for turn in turns) >= FEWEST_CHARACTERS
