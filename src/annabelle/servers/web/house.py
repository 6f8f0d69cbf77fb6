"""The browsers of all agents: each starts at its agent's first call and ends when it was idle for a while."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from annabelle.core.errors import AnnabelleError, TooManyRequests, Unavailable
from annabelle.servers.kit import current_call, in_thread
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.kit.net.addresses import Reach
from annabelle.servers.kit.overflow import Overflow
from annabelle.servers.web.config import BrowserConfig
from annabelle.servers.web.finding import what_is_missing
from annabelle.servers.web.gate import Gate
from annabelle.servers.web.launching import Driver
from annabelle.servers.web.profile import INCOMING, profile_of
from annabelle.servers.web.session import Session
from annabelle.servers.web.traces import forget_typed

_log = logging.getLogger(__name__)

MAX_BROWSERS = 4
NOBODY = "people"
"""Whose browser it is when no agent calls."""


@dataclass(slots=True)
class Room:
    """An agent's place: one call at a time, and the browser if it runs."""

    agent: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    session: Session | None = None
    starting: asyncio.Task[Session] | None = None
    used_at: float = 0.0
    idle: asyncio.TimerHandle | None = None


class House:
    """Gives each call the browser of its agent."""

    def __init__(self, config: BrowserConfig, reach: Reach | None = None) -> None:
        self.config = config
        self.workspace = Workspace(config.files)
        self.overflow = Overflow(self.workspace)
        self.reach = reach or Reach(config.exceptions)
        self._driver = Driver(config)
        self._rooms: dict[str, Room] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[Session]:
        """The running browser of whoever calls, for one call at a time."""
        async with self._entered() as room:
            yield await self._session(room)

    async def leave(self) -> bool:
        """Close the browser of whoever calls; tells whether there was one."""
        async with self._entered() as room:
            ran = room.session is not None and room.session.alive
            await self._end(room)
            await self._rest()
            return ran

    async def missing(self) -> str | None:
        """What keeps a browser from starting, as one sentence."""
        return what_is_missing(self.config.path)

    async def close(self) -> None:
        """End every browser, and the driver."""
        await asyncio.gather(*(self._end(room) for room in self._rooms.values()))
        await self._driver.stop()

    @asynccontextmanager
    async def _entered(self) -> AsyncGenerator[Room]:
        agent = current_call().agent_id or NOBODY
        room = self._rooms.setdefault(agent, Room(agent))
        try:
            async with asyncio.timeout(self.config.patience.queue):
                await room.lock.acquire()
        except TimeoutError:
            raise Unavailable("Another call still uses the browser.", hint="Wait for it, then call again.") from None
        try:
            if room.idle is not None:
                room.idle.cancel()
            yield room
        finally:
            room.lock.release()
            self._wait_for_use(room)

    async def _session(self, room: Room) -> Session:
        ended = room.session is not None and not room.session.alive
        if ended:
            await self._end(room)
        session = room.session or await self._started(room)
        if ended:
            session.tell("The browser had ended, so a new one was started; open the page again.")
        return session

    async def _started(self, room: Room) -> Session:
        await self._make_space(room)
        starting = room.starting or asyncio.ensure_future(self._start(room))
        room.starting = starting
        # A start that a cancelled call began goes on, and the next call finds it: nothing is left half started.
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(lambda _started: self._wait_for_use(room))
            raise

    async def _start(self, room: Room) -> Session:
        try:
            room.session = await self._launched(room)
        finally:
            room.starting = None
        return room.session

    async def _launched(self, room: Room) -> Session:
        gate = Gate(self.reach)
        profile = profile_of(self.config.profiles, room.agent)
        try:
            context = await self._driver.launch(profile, gate)
        except (TimeoutError, AnnabelleError) as error:
            await gate.close()
            if isinstance(error, AnnabelleError):
                raise
            raise Unavailable("The browser did not start in time.", hint="Call again in a moment.") from error
        return Session(context, gate, profile / INCOMING, self.workspace, self.config.patience)

    def _wait_for_use(self, room: Room) -> None:
        """From now on the browser is idle, until the next call."""
        room.used_at = time.monotonic()
        if room.idle is not None:
            room.idle.cancel()
        loop = asyncio.get_running_loop()
        room.idle = loop.call_later(self.config.idle_seconds, self._expire, room) if room.session else None

    async def _make_space(self, newcomer: Room) -> None:
        """Close the browser that was idle longest while there are as many as this machine should carry. Those that are
        about to start count too: several agents may begin at the same time."""
        others = [room for room in self._rooms.values() if room is not newcomer]
        while len(running := [room for room in others if room.session or room.starting]) >= MAX_BROWSERS:
            idle = sorted((room for room in running if not room.lock.locked()), key=lambda room: room.used_at)
            if not idle:
                raise TooManyRequests(f"{MAX_BROWSERS} browsers are in use already.", hint="Call again in a minute.")
            async with idle[0].lock:
                await self._end(idle[0])

    async def _end(self, room: Room) -> None:
        if room.starting is not None:
            await asyncio.wait([room.starting], timeout=self.config.patience.start)
        session, room.session = room.session, None
        if session is not None:
            await session.close()
            profile = profile_of(self.config.profiles, room.agent)
            await in_thread(lambda _stop: forget_typed(profile))
        if room.idle is not None:
            room.idle.cancel()

    def _expire(self, room: Room) -> None:
        task = asyncio.ensure_future(self._close_idle(room))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_idle(self, room: Room) -> None:
        if room.lock.locked():
            return  # in use again; the timer is set anew when that call ends
        async with room.lock:
            await self._end(room)
            _log.info("an idle browser was closed")
            await self._rest()

    async def _rest(self) -> None:
        """The driver takes more memory than this process, so it ends with the last browser."""
        if not any(room.session or room.starting for room in self._rooms.values()):
            await self._driver.stop()
