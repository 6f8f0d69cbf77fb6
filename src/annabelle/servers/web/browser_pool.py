"""The browsers of all agents: started on the first call, closed when idle."""

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
from annabelle.servers.kit.host_access import HostAccess
from annabelle.servers.kit.overflow import Overflow
from annabelle.servers.web.browser_launcher import INCOMING, BrowserLauncher, profile_folder, remove_typed_traces
from annabelle.servers.web.browser_session import BrowserSession
from annabelle.servers.web.config import BrowserConfig, describe_missing
from annabelle.servers.web.proxy import EgressProxy

_log = logging.getLogger(__name__)

MAX_BROWSERS = 4
NOBODY = "people"
"""Owner of the browser when no agent calls."""


@dataclass(slots=True)
class Slot:
    """An agent's browser, if it runs, and the lock that allows one call at a time."""

    agent: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    session: BrowserSession | None = None
    starting: asyncio.Task[BrowserSession] | None = None
    used_at: float = 0.0
    idle: asyncio.TimerHandle | None = None


class BrowserPool:
    def __init__(self, config: BrowserConfig, host_access: HostAccess | None = None) -> None:
        self.config = config
        self.workspace = Workspace(config.files)
        self.overflow = Overflow(self.workspace)
        self.host_access = host_access or HostAccess(config.exceptions)
        self._driver = BrowserLauncher(config)
        self._slots: dict[str, Slot] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def use_session(self) -> AsyncGenerator[BrowserSession]:
        """Yield the caller's running browser, for one call at a time."""
        async with self._locked_slot() as slot:
            yield await self._get_session(slot)

    async def close_own(self) -> bool:
        """Close the caller's browser. Returns whether there was one."""
        async with self._locked_slot() as slot:
            ran = slot.session is not None and slot.session.alive
            await self._close_slot(slot)
            await self._stop_driver_if_unused()
            return ran

    async def missing(self) -> str | None:
        return describe_missing(self.config.path)

    async def close(self) -> None:
        await asyncio.gather(*(self._close_slot(room) for room in self._slots.values()))
        await self._driver.stop()

    @asynccontextmanager
    async def _locked_slot(self) -> AsyncGenerator[Slot]:
        agent = current_call().agent_id or NOBODY
        slot = self._slots.setdefault(agent, Slot(agent))
        try:
            async with asyncio.timeout(self.config.timeouts.queue):
                await slot.lock.acquire()
        except TimeoutError:
            raise Unavailable("Another call still uses the browser.", hint="Wait for it, then call again.") from None
        try:
            if slot.idle is not None:
                slot.idle.cancel()
            yield slot
        finally:
            slot.lock.release()
            self._start_idle_timer(slot)

    async def _get_session(self, slot: Slot) -> BrowserSession:
        ended = slot.session is not None and not slot.session.alive
        if ended:
            await self._close_slot(slot)
        session = slot.session or await self._start_or_join(slot)
        if ended:
            session.add_notice("The browser had ended, so a new one was started; open the page again.")
        return session

    async def _start_or_join(self, slot: Slot) -> BrowserSession:
        await self._close_longest_idle(slot)
        starting = slot.starting or asyncio.ensure_future(self._start(slot))
        slot.starting = starting
        # If the call is cancelled, the start goes on and the next call finds it.
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(lambda _started: self._start_idle_timer(slot))
            raise

    async def _start(self, slot: Slot) -> BrowserSession:
        try:
            slot.session = await self._launch(slot)
        finally:
            slot.starting = None
        return slot.session

    async def _launch(self, slot: Slot) -> BrowserSession:
        proxy = EgressProxy(self.host_access)
        profile = profile_folder(self.config.profiles, slot.agent)
        try:
            context = await self._driver.launch(profile, proxy)
        except (TimeoutError, AnnabelleError) as error:
            await proxy.close()
            if isinstance(error, AnnabelleError):
                raise
            raise Unavailable("The browser did not start in time.", hint="Call again in a moment.") from error
        return BrowserSession(context, proxy, profile / INCOMING, self.workspace, self.config.timeouts)

    def _start_idle_timer(self, slot: Slot) -> None:
        slot.used_at = time.monotonic()
        if slot.idle is not None:
            slot.idle.cancel()
        loop = asyncio.get_running_loop()
        slot.idle = loop.call_later(self.config.idle_seconds, self._on_idle, slot) if slot.session else None

    async def _close_longest_idle(self, newcomer: Slot) -> None:
        """Close the longest idle browser if there are too many, counting those that are starting."""
        others = [room for room in self._slots.values() if room is not newcomer]
        while len(running := [room for room in others if room.session or room.starting]) >= MAX_BROWSERS:
            idle = sorted((room for room in running if not room.lock.locked()), key=lambda room: room.used_at)
            if not idle:
                raise TooManyRequests(f"{MAX_BROWSERS} browsers are in use already.", hint="Call again in a minute.")
            async with idle[0].lock:
                await self._close_slot(idle[0])

    async def _close_slot(self, slot: Slot) -> None:
        if slot.starting is not None:
            await asyncio.wait([slot.starting], timeout=self.config.timeouts.start)
        session, slot.session = slot.session, None
        if session is not None:
            await session.close()
            profile = profile_folder(self.config.profiles, slot.agent)
            await in_thread(lambda _stop: remove_typed_traces(profile))
        if slot.idle is not None:
            slot.idle.cancel()

    def _on_idle(self, slot: Slot) -> None:
        task = asyncio.ensure_future(self._close_idle(slot))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close_idle(self, slot: Slot) -> None:
        if slot.lock.locked():
            return  # in use again; that call restarts the timer
        async with slot.lock:
            await self._close_slot(slot)
            _log.info("an idle browser was closed")
            await self._stop_driver_if_unused()

    async def _stop_driver_if_unused(self) -> None:
        """Stop the driver with the last browser: it takes more memory than this process."""
        if not any(room.session or room.starting for room in self._slots.values()):
            await self._driver.stop()
