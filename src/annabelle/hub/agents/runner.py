"""Runs one agent's process: the first message starts it, idleness stops it, a crash restarts it (AGT-02, AGT-06)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from annabelle.core.background import BackgroundTasks
from annabelle.core.backoff import backoff_seconds
from annabelle.core.contract import AgentProfile
from annabelle.core.errors import AnnabelleError, Unavailable
from annabelle.core.messages import now
from annabelle.hub.agents.client import ThinkerClient, ThinkerGone, ThinkerRefused
from annabelle.hub.agents.halts import Halts
from annabelle.hub.agents.process import ThinkerProcess

WINDOW_SECONDS = 600.0
FLAPPING_ABOVE = 3
_CAP_SECONDS = 30.0


class AgentRestartBackoff:
    """Counts process deaths by the monotonic clock, so changes of the wall clock do not matter."""

    def __init__(self, base_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._base, self._clock = base_seconds, clock
        self._recent: deque[float] = deque()
        self._in_a_row = 0
        self._last_death = 0.0
        self.count = 0

    def died(self) -> None:
        self._in_a_row += 1
        self._last_death = self._clock()

    def restarted(self) -> None:
        self.count += 1
        self._recent.append(self._clock())

    def worked(self) -> None:
        """A turn finished, so the agent is healthy and the next wait is short again."""
        self._in_a_row = 0

    @property
    def pending(self) -> bool:
        return self._in_a_row > 0

    @property
    def wait_seconds(self) -> float:
        if not self._in_a_row:
            return 0.0
        pause = backoff_seconds(self._in_a_row, self._base, _CAP_SECONDS)
        return max(0.0, self._last_death + pause - self._clock())

    @property
    def flapping(self) -> bool:
        """More than three restarts within ten minutes."""
        while self._recent and self._recent[0] < self._clock() - WINDOW_SECONDS:
            self._recent.popleft()
        return len(self._recent) > FLAPPING_ABOVE


_log = logging.getLogger(__name__)
_DYING_SECONDS = 1.0
RunnerState = Literal["stopped", "starting", "running", "stopping"]


async def _ignore_client(_client: ThinkerClient) -> None: ...


async def _ignore_turn(_message_id: str) -> None: ...


def _ignore() -> None: ...


@dataclass(frozen=True, slots=True)
class RunnerHooks:
    """`may_start` raises if no process may start; `on_started` gets the client of every ready process; `on_given_up`
    gets a turn that no later process may resume.
    """

    may_start: Callable[[], None] = _ignore
    on_started: Callable[[ThinkerClient], Coroutine[None, None, None]] = _ignore_client
    on_given_up: Callable[[str], Coroutine[None, None, None]] = _ignore_turn
    on_flapping: Callable[[], None] = _ignore


async def cancel_owed_turns(halts: Halts, agent_id: str, client: ThinkerClient) -> None:
    """Cancel the turns that ended while the thinker was not running."""
    for message_id in halts.owed_cancels(agent_id):
        try:
            with contextlib.suppress(ThinkerRefused):  # it does not know the turn, so it will not resume it
                await client.cancel(message_id)
        except ThinkerGone:
            return  # the next process is told
        halts.remove_owed_cancel(agent_id, message_id)
        await asyncio.to_thread(halts.save)


class ThinkerStarter(Protocol):
    """Starts processes for a runner, like `ThinkerLauncher`."""

    @property
    def stop_grace_seconds(self) -> float: ...

    def admit(self, agent_id: str) -> str: ...

    def dismiss(self, secret: str) -> None: ...

    async def launch(self, profile: AgentProfile, port: int, secret: str) -> tuple[ThinkerProcess, ThinkerClient]: ...


@dataclass(frozen=True, slots=True)
class RunnerPlan:
    """What an agent's process is started from. A different plan needs a new process."""

    profile: AgentProfile
    port: int
    idle_seconds: float


@dataclass(slots=True)
class _LiveProcess:
    process: ThinkerProcess
    client: ThinkerClient
    secret: str
    plan: RunnerPlan
    watching: asyncio.Task[None] | None = None


class AgentRunner:
    """Runs at most one thinker process for one agent."""

    def __init__(
        self,
        plan: RunnerPlan,
        launcher: ThinkerStarter,
        restarts: AgentRestartBackoff,
        hooks: RunnerHooks | None = None,
    ) -> None:
        self.plan, self.restarts = plan, restarts
        self._launcher, self._hooks = launcher, hooks or RunnerHooks()
        self.state: RunnerState = "stopped"
        self.turns = 0
        self.last_activity: datetime | None = None
        self._active_at = time.monotonic()
        self._live: _LiveProcess | None = None
        # Serializes state changes; callers that need the agent wait here in order.
        self._changing = asyncio.Lock()
        self._background = BackgroundTasks()
        self._closed = False

    @property
    def agent_id(self) -> str:
        return self.plan.profile.agent_id

    @property
    def pid(self) -> int | None:
        return self._live.process.pid if self._live is not None else None

    @property
    def port(self) -> int | None:
        return self._live.client.port if self._live is not None else None

    @contextlib.contextmanager
    def turn(self) -> Generator[None]:
        self.turns += 1
        self._mark_active()
        try:
            yield
        finally:
            self.turns -= 1
            self._mark_active()

    def replace_plan(self, plan: RunnerPlan) -> None:
        self.plan = plan

    async def ensure(self) -> ThinkerClient:
        """Client of the running agent. Starts the process if needed, after the backoff if it has just died."""
        async with self._changing:
            life = self._live
            if life is not None and life.process.alive and not (self.outdated and self.turns <= 1):
                return life.client
            if life is not None and not life.process.alive:
                self._note_death(life)
            elif life is not None:
                await self._end(life)
            return (await self._start()).client

    async def unanswered(self, client: ThinkerClient) -> None:
        """Report that the client got no answer. Waits a moment for its process to die."""
        life = self._live
        if life is not None and life.client is client:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DYING_SECONDS):
                    await life.process.exited()

    async def give_up(self, message_id: str) -> None:
        """End a turn whose process died too often. The next process would resume it otherwise."""
        await self._hooks.on_given_up(message_id)

    def running_client(self) -> ThinkerClient | None:
        return self._live.client if self._live is not None and self.state == "running" else None

    async def restart(self) -> None:
        async with self._changing:
            if self._live is not None:
                await self._end(self._live)
                await self._start()

    async def stop_if_idle(self) -> bool:
        idle_for = time.monotonic() - self._active_at
        if self._live is None or self.turns or idle_for < self.plan.idle_seconds or self._changing.locked():
            return False
        _log.info("The agent %s was idle for %.0f s and is stopped", self.agent_id, idle_for)
        await self.stop()
        return True

    async def stop(self) -> None:
        async with self._changing:
            if self._live is not None:
                await self._end(self._live)

    @contextlib.asynccontextmanager
    async def stopped(self) -> AsyncGenerator[None]:
        """While inside, the agent has no process, and callers that need it wait."""
        async with self._changing:
            if self._live is not None:
                await self._end(self._live)
            yield

    async def end_now(self) -> None:
        """Kill the process and its children at once. Later work may start a new one."""
        self._background.cancel()
        life = self._live
        if life is not None:
            self._live, self.state = None, "stopped"  # first, or its death would trigger a restart
            self._launcher.dismiss(life.secret)
            life.client.close()
            await life.process.kill()

    async def kill(self) -> None:
        """Kill the process and its children, and do not start another."""
        self._closed = True  # or its death would trigger a restart
        if self._live is not None:
            await self._live.process.kill()
        await self.close()

    async def close(self) -> None:
        self._closed = True
        await self._background.stop()
        await self.stop()

    @property
    def outdated(self) -> bool:
        return self._live is not None and (self._live.plan.profile, self._live.plan.port) != (
            self.plan.profile,
            self.plan.port,
        )

    async def _start(self) -> _LiveProcess:
        if self._closed:
            raise Unavailable("Annabelle is shutting down.")
        self._hooks.may_start()
        self.state = "starting"
        secret = self._launcher.admit(self.agent_id)
        try:
            if self.restarts.pending:
                await asyncio.sleep(self.restarts.wait_seconds)
                self.restarts.restarted()
                if self.restarts.flapping:
                    self._hooks.on_flapping()
            process, client = await self._launcher.launch(self.plan.profile, self.plan.port, secret)
        except BaseException as error:
            self.state = "stopped"
            self._launcher.dismiss(secret)
            if isinstance(error, AnnabelleError):
                self.restarts.died()
            raise
        life = _LiveProcess(process, client, secret, self.plan)
        life.watching = asyncio.create_task(self._watch(life))
        self._live, self.state = life, "running"
        self._background.start(self._hooks.on_started(client))
        self._mark_active()
        return life

    async def _watch(self, life: _LiveProcess) -> None:
        await life.process.exited()
        if self._live is life and self.state == "running":
            self._note_death(life)
            # A flapping agent restarts only when there is work for it.
            if not self._closed and not self.restarts.flapping:
                self._background.start(self._restart_after_death())

    def _note_death(self, life: _LiveProcess) -> None:
        _log.warning("The agent %s died with code %s", self.agent_id, life.process.exit_code)
        self._launcher.dismiss(life.secret)
        self.restarts.died()
        self._live, self.state = None, "stopped"
        life.client.close()

    async def _restart_after_death(self) -> None:
        try:
            await self.ensure()
        except AnnabelleError as error:
            _log.warning("The agent %s did not come back: %s", self.agent_id, error.message)

    async def _end(self, life: _LiveProcess) -> None:
        self.state = "stopping"
        try:
            life.client.close()
            await life.process.stop(self._launcher.stop_grace_seconds)
        finally:
            self._launcher.dismiss(life.secret)
            self._live, self.state = None, "stopped"

    def _mark_active(self) -> None:
        self._active_at, self.last_activity = time.monotonic(), now()
