"""The turns of this process, by message id: each message starts one turn."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime

from annabelle.core.contract import TurnBrief, TurnResult, TurnState
from annabelle.core.errors import AnnabelleError, ErrorBody, NotFound, StorageTrouble, Unavailable
from annabelle.core.failpoints import failpoint
from annabelle.core.ids import new_id
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.thinker import failpoints
from annabelle.thinker.engine import CANCEL_TOPIC, TURN_WORKFLOW
from annabelle.thinker.live_turn import LiveTurn, TurnStream
from annabelle.thinker.loop.deps import ThinkerDeps
from annabelle.thinker.turn import TurnWorkflow

_MAX_FINISHED = 64
_CANCEL_SECONDS = 5.0

_log = logging.getLogger(__name__)


class TurnRegistry:
    """Runs turns and keeps the latest finished ones; older ones are read from the durable record."""

    def __init__(self, deps: ThinkerDeps) -> None:
        self._deps = deps
        self._stream_id = new_id("st")
        self._turns: dict[str, LiveTurn] = {}
        self._stopping = False
        deps.engine.workflow(TURN_WORKFLOW, self.run)

    @property
    def running_count(self) -> int:
        return sum(live.result is None for live in self._turns.values())

    async def accept(self, brief: TurnBrief) -> TurnState:
        """Start the turn of this message; a repeated call finds the existing one."""
        live = self._turns.get(brief.message_id)
        if live is None:
            if self._stopping:
                raise Unavailable("This thinker is stopping.", hint="Send the message again in a moment.")
            live = self._get_or_create(brief.message_id)
            try:
                argument: JsonObject = {"brief": brief.model_dump(mode="json"), "started_at": now().isoformat()}
                await self._deps.engine.start(TURN_WORKFLOW, brief.message_id, argument)
                failpoint(failpoints.AFTER_ACCEPT)
                await asyncio.sleep(0)
                if not live.begun:
                    # Not started now: an earlier process had this turn, and may have finished it.
                    await self._restore(live)
            except BaseException:
                self._turns.pop(brief.message_id, None)
                raise
        return _make_state(live)

    async def run(self, argument: JsonObject) -> JsonObject:
        """The workflow; the engine also calls it for turns an earlier process left unfinished."""
        brief = TurnBrief.model_validate(argument["brief"])
        live = self._get_or_create(brief.message_id)
        live.begun = True
        if self._stopping:
            live.hold()
        started_at = datetime.fromisoformat(str(argument["started_at"]))
        try:
            return await TurnWorkflow(self._deps, brief, started_at, live).run()
        except Exception as error:
            _log.exception("the turn of %s failed unexpectedly", brief.message_id)
            problem = AnnabelleError(
                f"The turn failed unexpectedly: {type(error).__name__}.", hint="The log of the thinker has the details."
            )
            live.finish(make_failed_result(brief.message_id, problem.body(brief.trace_id)))
            raise problem from error

    async def state(self, message_id: str, wait: float) -> TurnState:
        live = await self._find(message_id)
        await live.wait_result(wait)
        return _make_state(live)

    async def stream(self, message_id: str) -> TurnStream:
        return (await self._find(message_id)).stream

    async def cancel(self, message_id: str) -> TurnState:
        """Stop a turn. Returns when its end is recorded, so that it stays stopped after a crash."""
        live = await self._find(message_id)
        if live.result is None:
            live.cancel()
            await self._deps.engine.signal(message_id, CANCEL_TOPIC)
            if await live.wait_result(_CANCEL_SECONDS) is not None:
                await self._deps.engine.recorded(message_id, _CANCEL_SECONDS)
        return _make_state(live)

    def notify_running(self, reason: str) -> None:
        """Tell every running turn's reader why it takes long, once per turn."""
        for live in self._turns.values():
            if live.result is None:
                live.stream.add_fact("notice", "hub-unreachable", {"text": reason})

    async def stop(self, grace: float) -> None:
        """Start no further step, and give running ones `grace` seconds to finish."""
        self._stopping = True
        running = [live for live in self._turns.values() if live.result is None]
        for live in running:
            live.hold()
        try:
            async with asyncio.timeout(grace):
                for live in running:
                    await live.wait_idle()
        except TimeoutError:
            _log.info("%d turns were interrupted in a step; the next process takes them up", len(running))

    def _get_or_create(self, message_id: str) -> LiveTurn:
        live = self._turns.get(message_id)
        if live is None:
            live = self._turns[message_id] = LiveTurn(TurnStream(self._stream_id, message_id))
            finished = [name for name, other in self._turns.items() if other.result is not None]
            for name in finished[:-_MAX_FINISHED]:
                del self._turns[name]
        return live

    async def _find(self, message_id: str) -> LiveTurn:
        """The turn, whether it runs, has ended, or will be resumed after a restart."""
        live = self._turns.get(message_id)
        if live is None:
            live = LiveTurn(TurnStream(self._stream_id, message_id))
            if not await self._restore(live) and not await self._deps.engine.exists(message_id):
                raise NotFound(f"There is no turn {message_id}.")
            live = self._turns.setdefault(message_id, live)
        return live

    async def _restore(self, live: LiveTurn) -> bool:
        """Load a turn that was finished earlier. Returns False if there is none."""
        try:
            kept = await self._deps.engine.finished(live.message_id)
        except (StorageTrouble, Unavailable):
            # The record could not be read, which says nothing about the turn: the caller asks again.
            raise
        except AnnabelleError as error:
            body = error.body()
            live.stream.add_fact("error", "error", body.model_dump(exclude_none=True))
            live.finish(make_failed_result(live.message_id, body))
            return True
        if kept is None:
            return False
        live.stream.replay(kept["facts"])
        live.finish(TurnResult.model_validate(kept["result"]))
        return True


def make_failed_result(message_id: str, body: ErrorBody) -> TurnResult:
    text = f"{body.message} {body.hint}" if body.hint else body.message
    return TurnResult(message_id=message_id, success=False, text=text, error=body)


def _make_state(live: LiveTurn) -> TurnState:
    if live.result is None:
        return TurnState(message_id=live.message_id, state="running")
    return TurnState(message_id=live.message_id, state="done" if live.result.success else "failed", result=live.result)
