"""Gives a call id one effect: a repeat joins the call under way or replays its result (DUR-03).

The call runs in a task of its own. A caller that goes away (a killed thinker) does not take it along: it ends, is
written down, and the thinker that comes back with the same id gets the result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Collection
from dataclasses import dataclass

from annabelle.core.errors import (
    AnnabelleError,
    Conflict,
    OutcomeUnknown,
    ServerDown,
    StorageTrouble,
    ToolTimeout,
    TurnCancelled,
    Unavailable,
)
from annabelle.core.failpoints import failpoint
from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.toolbox.journal import CallJournal, JournalledCall, arguments_hash

_log = logging.getLogger(__name__)
_RAISED_AGAIN: dict[str, type[AnnabelleError]] = {
    kind.code: kind for kind in (ServerDown, ToolTimeout, TurnCancelled, OutcomeUnknown)
}


@dataclass(frozen=True, slots=True)
class _Flight:
    digest: str
    task: asyncio.Task[ToolResult]
    server: str
    context: CallContext


class Recorder:
    """The calls under way, by id, and the journal of those that are over."""

    def __init__(self, journal: CallJournal) -> None:
        self._journal = journal
        self._flights: dict[str, _Flight] = {}

    async def run(
        self, call_id: str, inner: ToolClient, tool: ToolSpec, arguments: JsonObject, context: CallContext
    ) -> ToolResult:
        digest = arguments_hash(tool.name, arguments)
        flight = self._flights.get(call_id)
        if flight is not None:
            if flight.digest != digest:
                raise Conflict(f"The call id {call_id} is in use for another call.")
            return (await asyncio.shield(flight.task)).model_copy(update={"replayed": True})
        record = JournalledCall(call_id, tool.name, digest, context)
        task = asyncio.create_task(self._once(record, inner, tool, arguments))
        self._flights[call_id] = _Flight(digest, task, tool.server, context)
        task.add_done_callback(lambda done: self._landed(call_id, done))
        return await asyncio.shield(task)

    async def begun(self, call_id: str) -> bool:
        """Whether a call of this id is under way or written down: it was let through once."""
        return call_id in self._flights or await self._journal.known(call_id)

    async def cancel(self, call_id: str) -> bool:
        flight = self._flights.get(call_id)
        if flight is None:
            return False
        flight.task.cancel()
        await asyncio.wait([flight.task], timeout=5)
        return True

    def give_up(self, message_id: str) -> None:
        """Stop every call made for a message, its subagents' included: nobody wants what comes of them."""
        for flight in self._flights.values():
            if flight.context.message_id == message_id:
                flight.task.cancel()

    def give_up_for(self, agents: Collection[str]) -> None:
        """Stop every call these agents have made, those in the background included."""
        for flight in self._flights.values():
            if flight.context.caller == "agent" and flight.context.agent_id in agents:
                flight.task.cancel()

    def at_work(self, messages: Collection[str], agents: Collection[str]) -> set[str]:
        """The servers that have calls under way for one of these messages or agents."""
        return {
            flight.server
            for flight in self._flights.values()
            if flight.context.message_id in messages or flight.context.agent_id in agents
        }

    async def drain(self, seconds: float) -> None:
        """Let calls under way end; those that do not in time are cancelled and written down as such."""
        tasks = [flight.task for flight in self._flights.values()]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=5)

    def _landed(self, call_id: str, task: asyncio.Task[ToolResult]) -> None:
        self._flights.pop(call_id, None)
        if not task.cancelled():
            task.exception()  # looked at: its caller may be gone, and it is in the journal

    async def _once(
        self, record: JournalledCall, inner: ToolClient, tool: ToolSpec, arguments: JsonObject
    ) -> ToolResult:
        failpoint("toolbox.before_begin")
        begun = await self._journal.begin(record)
        if begun.state == "finished" and begun.result is not None:
            return _replay(begun.result)
        if begun.state == "in_doubt" and not tool.annotations.repeatable:
            await _tried(self._journal.mark_unknown(record.call_id))
            raise OutcomeUnknown(
                f"{tool.name} was started before a crash, and whether it took effect is not known.",
                hint="Look before you repeat it.",
            )
        failpoint("toolbox.before_dispatch")
        try:
            result = await inner.call(tool, arguments, record.context)
        except asyncio.CancelledError as cancelled:
            raise await self._cancelled(record, tool) from cancelled
        except OutcomeUnknown:
            await _tried(self._journal.mark_unknown(record.call_id))
            raise
        except AnnabelleError as error:
            await self._finish(record, ToolResult.failure(error.body(record.context.trace_id)))
            raise
        failpoint("toolbox.before_result_recorded")
        await self._finish(record, result)
        failpoint("toolbox.after_result_recorded")
        return result

    async def _finish(self, record: JournalledCall, result: ToolResult) -> None:
        await _tried(self._journal.finish(record.call_id, result))

    async def _cancelled(self, record: JournalledCall, tool: ToolSpec) -> AnnabelleError:
        if not tool.annotations.repeatable:
            await _tried(self._journal.mark_unknown(record.call_id))
            return OutcomeUnknown(f"{tool.name} was cancelled under way, and what it did until then is not known.")
        error = TurnCancelled(f"{tool.name} was cancelled.")
        await self._finish(record, ToolResult.failure(error.body(record.context.trace_id)))
        return error


async def _tried(note: Awaitable[None]) -> None:
    """Write down what is known of a call that was made. A disk that is full must not turn it into one that failed:
    the caller gets what is known, and a repeat, which finds the call begun and without an end, is in doubt."""
    try:
        await note
    except (StorageTrouble, Unavailable) as trouble:
        _log.error("The end of a call could not be written down: %s", trouble.message)


def _replay(result: ToolResult) -> ToolResult:
    """The first outcome again: what was raised then is raised now."""
    kind = _RAISED_AGAIN.get(result.error.code) if result.error is not None else None
    if kind is not None and result.error is not None:
        raise kind(result.error.message, hint=result.error.hint)
    return result.model_copy(update={"replayed": True})


@dataclass(frozen=True, slots=True)
class Recorded:
    """Only calls that carry an id are written down; a person at a terminal may repeat what they like."""

    inner: ToolClient
    recorder: Recorder

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        if context.call_id is None:
            return await self.inner.call(tool, arguments, context)
        return await self.recorder.run(context.call_id, self.inner, tool, arguments, context)
