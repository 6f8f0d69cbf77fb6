"""Ends turns and keeps agents stopped, even if a thinker or a server hangs (TRU-06, LOOP-09).

Turns are first asked to end. After a moment the hub ends them itself, so the person sees it, and kills the processes
that did not answer, with their children.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import AnnabelleError, Conflict
from annabelle.core.ports import AuditTrail
from annabelle.core.trace import current_trace
from annabelle.hub.agents.client import ThinkerGone, ThinkerRefused
from annabelle.hub.agents.halts import ALL, RESUME, THINKER, Halts
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.approvals.expiry import QuestionWithdrawal
from annabelle.hub.conversations.turns import ActiveTurns, ReplyWaiters
from annabelle.hub.notices import Notices
from annabelle.store.approvals import OpenQuestionFilter
from annabelle.toolbox.facade import Toolbox

_log = logging.getLogger(__name__)
TOPIC: Final = "stopped"
TURN_SECONDS: Final = 0.7
"""Time for a turn to end by itself."""

ASKED_SECONDS: Final = 1.3
"""Time for a thinker to confirm a stop. Then it is killed, within two seconds of the stop."""

_HUNG_SECONDS: Final = 1.0
_GONE_SECONDS: Final = 2.0
_WHY: Final = "You stopped it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopper:
    """Ends turns from outside. Nothing else does."""

    agents: AgentManager
    turns: ActiveTurns
    toolbox: Toolbox
    reply_waiters: ReplyWaiters
    withdrawal: QuestionWithdrawal
    notices: Notices
    audit: AuditTrail
    _ending: BackgroundTasks = field(default_factory=BackgroundTasks, init=False)

    @property
    def halts(self) -> Halts:
        return self.agents.halts

    async def close(self) -> None:
        await self._ending.wait()

    async def end_turn(self, message_id: str, agent_id: str) -> None:
        """End a running turn. Other turns of the agent continue, in a new process if it has to be killed."""
        await self._end({message_id: agent_id}, for_good=())

    async def stop(self, target: str, by: str) -> int:
        """Stop an agent, a part or `ALL` until `resume`. Returns how many turns were ended."""
        agents = self._find_agents(target)
        self.halts.stop(target, by)
        running = self.turns.running_for(agents)
        self.audit.note(
            "stop", {"event": "stopped", "target": target, "by": by, "turns": len(running)}, current_trace()
        )
        saving = asyncio.create_task(asyncio.to_thread(self.halts.save))
        if agents:
            await self._end(running, for_good=agents)
        for agent_id in agents:
            await self._withdraw_questions(agent_id)
        self.update_notice()
        await saving
        return len(running)

    async def resume(self, target: str, by: str) -> bool:
        """Resume an agent, a part or `ALL`. Returns whether it was stopped."""
        self._find_agents(target)
        if target != ALL and self.halts.everything is not None:
            raise Conflict("Everything is stopped, not just one agent.", hint=f"Let all go on with: {RESUME}")
        if target not in (ALL, *self.halts.parts) and self.halts.is_halted(THINKER):
            raise Conflict("All agents are stopped, not just one.", hint=f"Let them go on with: {RESUME} {THINKER}")
        was = self.halts.resume(target)
        await asyncio.to_thread(self.halts.save)
        self.audit.note("stop", {"event": "resumed", "target": target, "by": by}, current_trace())
        self.update_notice()
        return was

    def _find_agents(self, target: str) -> list[str]:
        """The agents that a stop of the target ends. Raises NotFound for an unknown target."""
        if target in (ALL, THINKER):
            return [agent.agent_id for agent in self.agents.registry.config.agents]
        return [] if target in self.halts.parts else [self.agents.registry.agent(target).agent_id]

    async def _end(self, running: dict[str, str], for_good: Collection[str]) -> None:
        """End these turns. `running` maps messages to agents. Processes of agents in `for_good` always end."""
        servers = self.toolbox.calls.busy_servers(running, for_good)
        with contextlib.ExitStack() as stack:
            over = {message_id: stack.enter_context(self.reply_waiters.watch(message_id)) for message_id in running}
            for message_id in {*running, *self.turns.lent_to(for_good)}:
                self.turns.cancel(message_id)
            self.toolbox.calls.cancel_for_agents(for_good)
            hung = self._ending.start(self._end_hung(servers))
            asked = {one: asyncio.create_task(self._ask_to_cancel(agent_id, one)) for one, agent_id in running.items()}
            await _wait_all(over.values(), TURN_SECONDS)
            late = [message_id for message_id, event in over.items() if not event.is_set()]
            for message_id in late:
                self.turns.abandon(message_id)
            mute = self._ending.start(self._end_unresponsive({one: running[one] for one in late}, asked, for_good))
            await _wait_all(over.values(), TURN_SECONDS)
        if for_good:
            await asyncio.wait([mute, hung], timeout=_GONE_SECONDS)

    async def _ask_to_cancel(self, agent_id: str, message_id: str) -> bool:
        """Ask the thinker to cancel a turn. Returns whether it did, or does not know the turn."""
        client = self.agents.running_client(agent_id)
        if client is None:
            return False
        try:
            await client.cancel(message_id)
        except ThinkerRefused:
            return True  # it does not know the turn, and the follower will not begin it
        except ThinkerGone:
            return False
        return True

    async def _end_unresponsive(
        self, late: dict[str, str], asked: dict[str, asyncio.Task[bool]], for_good: Collection[str]
    ) -> None:
        """End the thinkers that did not cancel their turn, and those that are to stay stopped."""
        if late and not for_good:
            await asyncio.wait([asked[message_id] for message_id in late], timeout=ASKED_SECONDS - TURN_SECONDS)
        unheard = {one: agent_id for one, agent_id in late.items() if not _agreed(asked[one])}
        for task in asked.values():
            task.cancel()
        for message_id, agent_id in unheard.items():
            self.halts.add_owed_cancel(agent_id, message_id)
        ending = [self.agents.end_process(agent_id) for agent_id in {*unheard.values(), *for_good}]
        if unheard:
            ending.append(self._save())
        await asyncio.gather(*ending)

    async def _save(self) -> None:
        try:
            await asyncio.to_thread(self.halts.save)
        except AnnabelleError as error:
            _log.error("%s", error.message)

    async def _withdraw_questions(self, agent_id: str) -> None:
        try:
            await self.withdrawal.withdraw(OpenQuestionFilter(agent_id=agent_id), _WHY)
        except AnnabelleError as error:
            # Ignored: an approval could not run anything, because the agent is stopped.
            _log.error("The questions of %s could not be taken back: %s", agent_id, error.message)

    async def _end_hung(self, servers: Collection[str]) -> None:
        """End servers that hang in calls of these turns, because they cannot have received the cancellation."""
        await self.toolbox.kill_hung(servers, _HUNG_SECONDS)

    def update_notice(self) -> None:
        """Show what is stopped, also by an earlier process."""
        halts, notices = self.halts, self.notices
        if halts.damaged:
            text = f"The file that says what is stopped is damaged, so everything is. Let it go on with: {RESUME}"
        elif halts.everything is not None:
            text = f"Everything is stopped. Let it go on with: {RESUME}"
        elif halts.stopped:
            text = f"Stopped: {', '.join(halts.stopped)}. Let one go on with: {RESUME} {halts.stopped[0]}"
        else:
            notices.clear(TOPIC)
            return
        notices.add(TOPIC, text, level="warning")


def describe_stop(target: str, turns: int) -> str:
    what = "Everything is stopped" if target == ALL else f"{target} is stopped"
    ended = f"; {turns} {'turn was' if turns == 1 else 'turns were'} ended" if turns else ""
    return f"{what}{ended}."


def describe_resume(target: str, *, was: bool) -> str:
    what = "Everything goes on." if target == ALL else f"{target} goes on."
    return what if was else "Nothing was stopped."


def _agreed(asked: asyncio.Task[bool]) -> bool:
    return asked.done() and not asked.cancelled() and asked.exception() is None and asked.result()


async def _wait_all(events: Iterable[asyncio.Event], seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for event in events:
                await event.wait()
