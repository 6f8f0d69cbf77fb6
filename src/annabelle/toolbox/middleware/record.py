"""Records calls: one effect per call id, replayed on a repeat (DUR-03), and an audit entry for every call (TRU-08)."""

from __future__ import annotations

import asyncio
import logging
import time
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
from annabelle.core.ports import AuditTrail, ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.toolbox.call_hooks import CallJournal, JournalledCall, arguments_hash

_log = logging.getLogger(__name__)
_RAISED_AGAIN: dict[str, type[AnnabelleError]] = {
    kind.code: kind for kind in (ServerDown, ToolTimeout, TurnCancelled, OutcomeUnknown)
}


@dataclass(frozen=True, slots=True)
class _RunningCall:
    digest: str
    task: asyncio.Task[ToolResult]
    server: str
    context: CallContext


class CallRecorder:
    """The running calls by id, and the journal of finished ones."""

    def __init__(self, journal: CallJournal) -> None:
        self._journal = journal
        self._running: dict[str, _RunningCall] = {}

    async def run(
        self, call_id: str, inner: ToolClient, tool: ToolSpec, arguments: JsonObject, context: CallContext
    ) -> ToolResult:
        digest = arguments_hash(tool.name, arguments)
        running = self._running.get(call_id)
        if running is not None:
            if running.digest != digest:
                raise Conflict(f"The call id {call_id} is in use for another call.")
            return (await asyncio.shield(running.task)).model_copy(update={"replayed": True})
        record = JournalledCall(call_id, tool.name, digest, context)
        task = asyncio.create_task(self._run_once(record, inner, tool, arguments))
        self._running[call_id] = _RunningCall(digest, task, tool.server, context)
        task.add_done_callback(lambda done: self._on_done(call_id, done))
        return await asyncio.shield(task)

    async def was_started(self, call_id: str) -> bool:
        """Whether a call with this id is running or in the journal."""
        return call_id in self._running or await self._journal.known(call_id)

    async def cancel(self, call_id: str) -> bool:
        running = self._running.get(call_id)
        if running is None:
            return False
        running.task.cancel()
        await asyncio.wait([running.task], timeout=5)
        return True

    def cancel_for_message(self, message_id: str) -> None:
        """Cancel every call made for a message, its subagents' included."""
        for running in self._running.values():
            if running.context.message_id == message_id:
                running.task.cancel()

    def cancel_for_agents(self, agents: Collection[str]) -> None:
        """Cancel every call of these agents, background calls included."""
        for running in self._running.values():
            if running.context.caller == "agent" and running.context.agent_id in agents:
                running.task.cancel()

    def busy_servers(self, messages: Collection[str], agents: Collection[str]) -> set[str]:
        """Servers with running calls for one of these messages or agents."""
        return {
            running.server
            for running in self._running.values()
            if running.context.message_id in messages or running.context.agent_id in agents
        }

    async def drain(self, seconds: float) -> None:
        """Wait for running calls; cancel and record those that do not end in time."""
        tasks = [running.task for running in self._running.values()]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=5)

    def _on_done(self, call_id: str, task: asyncio.Task[ToolResult]) -> None:
        self._running.pop(call_id, None)
        if not task.cancelled():
            task.exception()  # marks it as retrieved: the caller may be gone, and the journal has it

    async def _run_once(
        self, record: JournalledCall, inner: ToolClient, tool: ToolSpec, arguments: JsonObject
    ) -> ToolResult:
        failpoint("toolbox.before_begin")
        begun = await self._journal.begin(record)
        if begun.state == "finished" and begun.result is not None:
            return _replay(begun.result)
        if begun.state == "in_doubt" and not tool.annotations.repeatable:
            await _try_to_record(self._journal.mark_unknown(record.call_id))
            raise OutcomeUnknown(
                f"{tool.name} was started before a crash, and whether it took effect is not known.",
                hint="Look before you repeat it.",
            )
        failpoint("toolbox.before_dispatch")
        try:
            result = await inner.call(tool, arguments, record.context)
        except asyncio.CancelledError as cancelled:
            raise await self._record_cancelled(record, tool) from cancelled
        except OutcomeUnknown:
            await _try_to_record(self._journal.mark_unknown(record.call_id))
            raise
        except AnnabelleError as error:
            await self._finish(record, ToolResult.failure(error.body(record.context.trace_id)))
            raise
        failpoint("toolbox.before_result_recorded")
        await self._finish(record, result)
        failpoint("toolbox.after_result_recorded")
        return result

    async def _finish(self, record: JournalledCall, result: ToolResult) -> None:
        await _try_to_record(self._journal.finish(record.call_id, result))

    async def _record_cancelled(self, record: JournalledCall, tool: ToolSpec) -> AnnabelleError:
        if not tool.annotations.repeatable:
            await _try_to_record(self._journal.mark_unknown(record.call_id))
            return OutcomeUnknown(f"{tool.name} was cancelled under way, and what it did until then is not known.")
        error = TurnCancelled(f"{tool.name} was cancelled.")
        await self._finish(record, ToolResult.failure(error.body(record.context.trace_id)))
        return error


async def _try_to_record(note: Awaitable[None]) -> None:
    """Record the outcome of a call. If that fails, as on a full disk, the caller still gets the outcome, and a repeat
    finds the call in doubt."""
    try:
        await note
    except (StorageTrouble, Unavailable) as trouble:
        _log.error("the outcome of a call could not be recorded: %s", trouble.message)


def _replay(result: ToolResult) -> ToolResult:
    """Return or raise the first outcome again."""
    kind = _RAISED_AGAIN.get(result.error.code) if result.error is not None else None
    if kind is not None and result.error is not None:
        raise kind(result.error.message, hint=result.error.hint)
    return result.model_copy(update={"replayed": True})


@dataclass(frozen=True, slots=True)
class RecordCall:
    """Records only calls with an id: a person at a terminal may repeat a call."""

    inner: ToolClient
    recorder: CallRecorder

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        if context.call_id is None:
            return await self.inner.call(tool, arguments, context)
        return await self.recorder.run(context.call_id, self.inner, tool, arguments, context)


@dataclass(frozen=True, slots=True)
class AuditCall:
    """Outermost, so that it sees what the caller sees."""

    inner: ToolClient
    audit: AuditTrail | None

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        if self.audit is None:
            return await self.inner.call(tool, arguments, context)
        started, outcome = time.perf_counter(), "failed"
        try:
            result = await self.inner.call(tool, arguments, context)
            outcome = _outcome(result)
        except AnnabelleError as error:
            outcome = error.code
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            facts: JsonObject = {
                "server": tool.server,
                "tool": tool.name,
                "caller": context.caller,
                "agent_id": context.agent_id,
                "user_id": context.user_id,
                "call_id": context.call_id,
                "outcome": outcome,
                "ms": round((time.perf_counter() - started) * 1000, 1),
                "arguments_hash": arguments_hash(tool.name, arguments),
            }
            self.audit.note("tool", facts, context.trace_id)
        return result


def _outcome(result: ToolResult) -> str:
    if result.approval_id is not None:
        return "waits"
    if result.is_error:
        return result.error.code if result.error is not None else "tool_failed"
    return "replayed" if result.replayed else "ok"


FAILPOINTS = (
    "toolbox.before_begin",
    "toolbox.before_dispatch",
    "toolbox.after_dispatch",
    "toolbox.before_result_recorded",
    "toolbox.after_result_recorded",
)
