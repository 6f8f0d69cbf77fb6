"""Keeps the running external servers equal to what the file says; a bad file changes nothing (EXT-03, I-18)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from annabelle.core.errors import NotFound
from annabelle.toolbox.external.entries import External, Reading, Unreadable, read_entries
from annabelle.toolbox.notices import Notice

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Apply:
    """How a difference becomes real."""

    add: Callable[[External], Awaitable[None]]
    remove: Callable[[str], Awaitable[None]]


class ExternalServers:
    """The last good set, and how to get to the next one."""

    def __init__(
        self, path: Path, hub: Mapping[str, str], default_timeout: float, notify: Callable[[Notice], None]
    ) -> None:
        self._path, self._hub, self._default_timeout = path, hub, default_timeout
        self._notify = notify
        self._busy = asyncio.Lock()
        self.current: dict[str, External] = {}

    def load(self, taken: frozenset[str]) -> dict[str, External]:
        """Read the file at boot. What is wrong in it is said, and the rest is used."""
        reading = self._read(taken)
        self.current = reading.servers if reading is not None else {}
        return self.current

    async def reload(self, taken: frozenset[str], apply: Apply) -> None:
        """Start what is new, restart what changed, stop what is gone; all else is not touched."""
        async with self._busy:
            reading = self._read(taken)
            if reading is None:
                return
            before, after = self.current, reading.servers
            gone = [name for name in before if name not in after]
            fresh = [name for name in after if name not in before]
            changed = [name for name in after if name in before and after[name] != before[name]]
            self.current = after
            await asyncio.gather(*(apply.remove(name) for name in (*gone, *changed)))
            await asyncio.gather(*(apply.add(after[name]) for name in (*fresh, *changed)))
            parts = [
                f"{verb}: {', '.join(names)}."
                for verb, names in (("Added", fresh), ("Changed", changed), ("Removed", gone))
                if names
            ]
            if parts:
                self._notify(Notice("servers_changed", f"External servers have changed. {' '.join(parts)}"))

    async def decide(self, name: str, decision: Callable[[External], bool], apply: Apply) -> None:
        """Take a person's word on one server, and start or stop it accordingly if that changed anything."""
        async with self._busy:
            server = self.find(name)
            if decision(server):
                await apply.remove(name)
                await apply.add(server)

    def find(self, name: str) -> External:
        """The server as the file has it; NotFound for any other, also for our own."""
        server = self.current.get(name)
        if server is None:
            raise NotFound(f"There is no external server called {name}.", hint=f"See {self._path.name}.")
        return server

    def _read(self, taken: frozenset[str]) -> Reading | None:
        try:
            text = self._path.read_text(encoding="utf-8")
            reading = read_entries(text, self._hub, taken, self._default_timeout)
        except FileNotFoundError:
            return Reading({})
        except (OSError, UnicodeDecodeError, Unreadable) as error:
            self._complain(f"{self._path.name} can not be used: {error}. The servers of before stay as they are.")
            return None
        for mistake in reading.mistakes:
            self._complain(f"{self._path.name}: {mistake} This entry is left out.")
        for server in reading.servers.values():
            if server.problem is not None:
                self._notify(Notice("server_disabled", server.problem, server.profile.name))
        return reading

    def _complain(self, text: str) -> None:
        _log.warning("%s", text)
        self._notify(Notice("external_config", text))
