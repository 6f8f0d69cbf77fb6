"""Sends turns and questions to a thinker, and repeats them if its process dies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from annabelle.core.contract import (
    ClearSession,
    ExtractBrief,
    ExtractResult,
    OrderBrief,
    OrderVerdict,
    SummaryBrief,
    SummaryResult,
    TidyBrief,
    TidyFactsResult,
    TurnBrief,
    TurnResult,
)
from annabelle.core.errors import AnnabelleError, StorageTrouble, TurnCancelled, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import TurnEvent
from annabelle.hub.agents.client import ThinkerClient, ThinkerGone, ThinkerRefused
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.process import ThinkerFailed
from annabelle.hub.agents.runner import AgentRunner

_log = logging.getLogger(__name__)
_DEATHS = 20
_REFUSALS = 3
_DISK_PAUSE_SECONDS = 1.0
_FACTS = frozenset({"tool_start", "tool_complete", "usage"})
# The hub writes these itself on delivery, in one transaction with the answer.
_WRITTEN_AT_DELIVERY = frozenset({"message", "error", "done", "approval"})


@dataclass(slots=True)
class _FollowProgress:
    """How far the event stream was read. A new process has a new stream, read from its start."""

    after: int = 0
    stream: str | None = None
    deaths: int = 0
    refusals: int = 0
    facts: set[str] = field(default_factory=set[str])

    def note(self, event: TurnEvent) -> None:
        """Reset the failure counts if the event is new progress of the turn."""
        fact = event.type in _FACTS or event.data.get("final") is True
        if fact and event.key not in self.facts:
            self.facts.add(event.key)
            self.deaths = self.refusals = 0


class TurnEventSink(Protocol):
    """Stores the events of a turn, like `EventLog`."""

    @property
    def crowded(self) -> bool: ...

    def add(self, thread_id: str, user_id: str, event: TurnEvent) -> asyncio.Future[None]: ...


class TurnFollower:
    """Sends a brief to the thinker and logs the events of its turn until there is a result."""

    def __init__(
        self, brief: TurnBrief, runner: AgentRunner, log: TurnEventSink, cancelled: Callable[[], bool]
    ) -> None:
        self._brief, self._runner, self._log, self._cancelled = brief, runner, log, cancelled

    async def follow(self) -> TurnResult:
        """Result of the turn. A thinker that dies is restarted with the same brief and resumes the turn."""
        progress = _FollowProgress()
        while True:
            client: ThinkerClient | None = None
            try:
                client = await self._runner.ensure()
                if self._cancelled() and progress.stream is None and not await self._cancel(client):
                    return failed_turn(self._brief.message_id, TurnCancelled("The turn was stopped before it began."))
                await client.begin(self._brief)
                if self._cancelled():
                    await client.cancel(self._brief.message_id)
                await self._read(client, progress)
                state = await client.state(self._brief.message_id)
                if state.result is not None:
                    self._runner.restarts.worked()
                    return state.result
            except StorageTrouble as trouble:
                # Events have unique keys, so reading again from the start is safe.
                progress.after, progress.stream = 0, None
                await self._pause(trouble, progress)
            except (ThinkerFailed, ThinkerRefused) as refused:
                # A process killed during its start says nothing about the next one.
                progress.refusals += 0 if isinstance(refused, ThinkerFailed) and refused.killed else 1
                if progress.refusals > _REFUSALS or (isinstance(refused, ThinkerFailed) and refused.lasting):
                    return failed_turn(self._brief.message_id, refused)
                await self._pause(refused, progress)
            except Unavailable as gone:
                await self._pause(gone, progress)
                if client is not None:
                    await self._runner.unanswered(client)
            if progress.deaths > _DEATHS:
                await self._runner.give_up(self._brief.message_id)
                return failed_turn(
                    self._brief.message_id,
                    Unavailable(
                        "The agent failed again and again while it worked on this message.",
                        hint=f"Its log is thinker-{self._runner.agent_id}.log; send the message again to retry.",
                    ),
                )

    async def _cancel(self, client: ThinkerClient) -> bool:
        """Cancel the turn. Returns False if the thinker does not have it."""
        try:
            await client.cancel(self._brief.message_id)
        except ThinkerRefused:
            return False
        return True

    async def _read(self, client: ThinkerClient, progress: _FollowProgress) -> None:
        unstored: list[asyncio.Future[None]] = []
        async for streamed in client.events(self._brief, progress.after, progress.stream):
            progress.after, progress.stream = streamed.n, streamed.stream
            if streamed.event.type in _WRITTEN_AT_DELIVERY or streamed.event.message_id != self._brief.message_id:
                continue
            progress.note(streamed.event)
            stored = self._log.add(self._brief.thread_id, self._brief.user_id, streamed.event)
            failpoint("hub.during_turn")
            if not unstored or unstored[-1] is not stored:
                # A failed batch ends the reading, even if later ones were written.
                unstored = [*await _unwritten(unstored), stored]
            if self._log.crowded:
                await stored
        for batch in unstored:
            await batch

    async def _pause(self, trouble: AnnabelleError, progress: _FollowProgress) -> None:
        _log.warning("Turn %s: %s It is tried again.", self._brief.message_id, trouble.message)
        if isinstance(trouble, StorageTrouble):
            # Not the agent's fault: wait for the disk as long as the delivery would.
            await asyncio.sleep(_DISK_PAUSE_SECONDS)
        else:
            progress.deaths += 1


async def _unwritten(batches: list[asyncio.Future[None]]) -> list[asyncio.Future[None]]:
    """The batches that are not written yet. Raises the error of a failed one."""
    for batch in batches:
        if batch.done():
            await batch
    return [batch for batch in batches if not batch.done()]


def failed_turn(message_id: str, error: AnnabelleError) -> TurnResult:
    return TurnResult(message_id=message_id, success=False, error=error.body())


T = TypeVar("T")
DEATHS: Final = 5


class ThinkerQuestions:
    """Questions to an agent's thinker. They raise AgentPaused, or Unavailable if it cannot answer."""

    def __init__(self, agents: AgentManager) -> None:
        self._agents = agents

    async def extract(self, agent_id: str, brief: ExtractBrief) -> ExtractResult:
        return await self._ask(agent_id, lambda client: client.extract(brief))

    async def tidy(self, agent_id: str, brief: TidyBrief) -> TidyFactsResult:
        return await self._ask(agent_id, lambda client: client.tidy(brief))

    async def read_order(self, agent_id: str, brief: OrderBrief) -> OrderVerdict:
        return await self._ask(agent_id, lambda client: client.read_order(brief))

    async def summarise(self, agent_id: str, brief: SummaryBrief) -> SummaryResult:
        return await self._ask(agent_id, lambda client: client.summarise(brief))

    async def clear_session(self, agent_id: str, wanted: ClearSession) -> None:
        await self._ask(agent_id, lambda client: client.clear_session(wanted))

    async def _ask(self, agent_id: str, question: Callable[[ThinkerClient], Awaitable[T]]) -> T:
        async with self._agents.turn(agent_id) as runner:
            for _ in range(DEATHS):
                client = await runner.ensure()
                try:
                    answer = await question(client)
                except ThinkerGone as gone:
                    # The question has an id, so the next process can repeat it without paying twice.
                    _log.warning("The agent %s did not answer a question: %s", agent_id, gone.message)
                    await runner.unanswered(client)
                else:
                    runner.restarts.worked()
                    return answer
        raise Unavailable(f"The agent {agent_id} died again and again over a question.")
