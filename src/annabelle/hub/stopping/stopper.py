"""Ends turns and keeps agents stopped, also when a thinker or a server does not answer any more (TRU-06, LOOP-09).

First everybody is asked to end. Who has not within a moment is not waited for: the turn ends here, where the person
sees it, and what does not answer is killed with all that it started.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Coroutine, Iterable
from dataclasses import dataclass
from typing import Final

from annabelle.core.errors import AnnabelleError, Conflict
from annabelle.core.ports import Audit
from annabelle.core.trace import current_trace
from annabelle.hub.agents.client import ThinkerClient, ThinkerGone, ThinkerRefused
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.approvals.withdrawing import Withdrawing
from annabelle.hub.finished import Finished
from annabelle.hub.notices import Notices
from annabelle.hub.stopping.halts import ALL, RESUME, Halts
from annabelle.hub.turns import Turns
from annabelle.store.open_questions import Where
from annabelle.toolbox.facade import Toolbox

_log = logging.getLogger(__name__)
TOPIC: Final = "stopped"
TURN_SECONDS: Final = 0.7
"""How long a turn has to end by itself."""

ASKED_SECONDS: Final = 1.3
"""How long a thinker has to say that it stopped; a hung one is killed then, within two seconds of the stop."""

_HUNG_SECONDS: Final = 1.0
_GONE_SECONDS: Final = 2.0
_WHY: Final = "You stopped it"


@dataclass(frozen=True, slots=True)
class StopperParts:
    """What it works with."""

    agents: AgentManager
    turns: Turns
    toolbox: Toolbox
    finished: Finished
    questions: Withdrawing
    halts: Halts
    notices: Notices
    audit: Audit


class Stopper:
    """The one place that ends turns from outside."""

    def __init__(self, parts: StopperParts) -> None:
        self._parts = parts
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def halts(self) -> Halts:
        return self._parts.halts

    def start(self) -> None:
        """Say again what an earlier hub was told to stop."""
        self._tell()

    async def close(self) -> None:
        if self._ending:
            await asyncio.wait(self._ending, timeout=5)

    async def end_turn(self, message_id: str, agent_id: str) -> None:
        """End one turn that runs. Others of the same agent go on, in a new process if it has to be killed."""
        await self._end({message_id: agent_id}, for_good=())

    async def stop(self, target: str, by: str) -> int:
        """Stop an agent, or all of them; how many turns were ended. It holds until `resume`."""
        parts = self._parts
        if target != ALL:
            parts.agents.agent(target)
        agents = [agent.agent_id for agent in parts.agents.config.agents] if target == ALL else [target]
        parts.halts.stop(target, by)
        running = parts.turns.of(agents)
        parts.audit.note(
            "stop", {"event": "stopped", "target": target, "by": by, "turns": len(running)}, current_trace()
        )
        saving = asyncio.create_task(asyncio.to_thread(parts.halts.save))
        await self._end(running, for_good=agents)
        for agent_id in agents:
            await self._take_back_questions(agent_id)
        self._tell()
        await saving
        return len(running)

    async def resume(self, target: str, by: str) -> bool:
        """Let it go on; whether it was stopped."""
        parts = self._parts
        if target != ALL:
            parts.agents.agent(target)
            if parts.halts.everything is not None:
                raise Conflict("Everything is stopped, not just one agent.", hint=f"Let all go on with: {RESUME}")
        was = parts.halts.resume(target)
        await asyncio.to_thread(parts.halts.save)
        parts.audit.note("stop", {"event": "resumed", "target": target, "by": by}, current_trace())
        self._tell()
        return was

    async def settle(self, agent_id: str, client: ThinkerClient) -> None:
        """A thinker has started: tell it which of its turns were ended while it could not be told."""
        halts = self._parts.halts
        for message_id in halts.owed(agent_id):
            try:
                with contextlib.suppress(ThinkerRefused):  # it does not know the turn, so it will not go on with it
                    await client.cancel(message_id)
            except ThinkerGone:
                return  # the next one is told
            halts.settle(agent_id, message_id)
            await asyncio.to_thread(halts.save)

    async def _end(self, running: dict[str, str], for_good: Collection[str]) -> None:
        """`running` has the agent of each message. The processes of the agents in `for_good` are ended anyway."""
        parts = self._parts
        servers = parts.toolbox.at_work(running, for_good)
        with contextlib.ExitStack() as stack:
            over = {message_id: stack.enter_context(parts.finished.watch(message_id)) for message_id in running}
            for message_id in {*running, *parts.turns.lent_to(for_good)}:
                parts.turns.cancel(message_id)
            parts.toolbox.give_up_for(for_good)
            hung = self._later(self._end_hung(servers))
            asked = {one: asyncio.create_task(self._ask(agent_id, one)) for one, agent_id in running.items()}
            await _all(over.values(), TURN_SECONDS)
            late = [message_id for message_id, event in over.items() if not event.is_set()]
            for message_id in late:
                parts.turns.abandon(message_id)
            mute = self._later(self._end_mute({one: running[one] for one in late}, asked, for_good))
            await _all(over.values(), TURN_SECONDS)
        if for_good:
            await asyncio.wait([mute, hung], timeout=_GONE_SECONDS)

    async def _ask(self, agent_id: str, message_id: str) -> bool:
        """Have the thinker stop a turn; whether it has, or never will have begun it."""
        client = self._parts.agents.running(agent_id)
        if client is None:
            return False
        try:
            await client.cancel(message_id)
        except ThinkerRefused:
            return True  # it does not know the turn; whoever follows it has heard by now
        except ThinkerGone:
            return False
        return True

    async def _end_mute(
        self, late: dict[str, str], asked: dict[str, asyncio.Task[bool]], for_good: Collection[str]
    ) -> None:
        """End the thinkers that did not stop a turn when they were asked to, and those that are to stay stopped."""
        parts = self._parts
        if late and not for_good:
            await asyncio.wait([asked[message_id] for message_id in late], timeout=ASKED_SECONDS - TURN_SECONDS)
        unheard = {one: agent_id for one, agent_id in late.items() if not _agreed(asked[one])}
        for task in asked.values():
            task.cancel()
        for message_id, agent_id in unheard.items():
            parts.halts.owe(agent_id, message_id)
        ending = [parts.agents.end_process(agent_id) for agent_id in {*unheard.values(), *for_good}]
        if unheard:
            ending.append(self._save())
        await asyncio.gather(*ending)

    async def _save(self) -> None:
        try:
            await asyncio.to_thread(self._parts.halts.save)
        except AnnabelleError as error:
            _log.error("%s", error.message)

    async def _take_back_questions(self, agent_id: str) -> None:
        try:
            await self._parts.questions.withdraw(Where(agent_id=agent_id), _WHY)
        except AnnabelleError as error:
            # A yes to one of them would find a stopped agent, so the stop holds all the same.
            _log.error("The questions of %s could not be taken back: %s", agent_id, error.message)

    async def _end_hung(self, servers: Collection[str]) -> None:
        """End the servers that have calls of these turns and do not answer: they can not have heard of the end."""
        await self._parts.toolbox.end_hung(servers, _HUNG_SECONDS)

    def _tell(self) -> None:
        halts, notices = self._parts.halts, self._parts.notices
        if halts.damaged:
            text = f"The file that says what is stopped is damaged, so everything is. Let it go on with: {RESUME}"
        elif halts.everything is not None:
            text = f"Everything is stopped. Let it go on with: {RESUME}"
        elif halts.agents:
            text = f"Stopped: {', '.join(halts.agents)}. Let one go on with: {RESUME} {halts.agents[0]}"
        else:
            notices.clear(TOPIC)
            return
        notices.add(TOPIC, text, level="warning")

    def _later(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task


def _agreed(asked: asyncio.Task[bool]) -> bool:
    return asked.done() and not asked.cancelled() and asked.exception() is None and asked.result()


async def _all(events: Iterable[asyncio.Event], seconds: float) -> None:
    """Wait until each is set, but no longer than so."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for event in events:
                await event.wait()
