"""External servers: read from `external-mcps.json`, reloaded when it changes, accepted or rejected by the owner
(EXT-03, EXT-04, I-09).
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import NotFound
from annabelle.core.home import write_atomically
from annabelle.core.ports import AuditTrail
from annabelle.toolbox.external.entries import ExternalServer, ReadEntries, UnreadableEntries, read_entries
from annabelle.toolbox.external.pins import PinChecker, ServerHold, ServerReview
from annabelle.toolbox.status import NoticeListener, ToolboxNotice

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerActions:
    """Starts and stops external servers."""

    add: Callable[[ExternalServer], Awaitable[None]]
    remove: Callable[[str], Awaitable[None]]


class ExternalServers:
    """The last valid set of entries, and the change to the next one."""

    def __init__(
        self, path: Path, hub: Mapping[str, str], default_timeout: float, notify: Callable[[ToolboxNotice], None]
    ) -> None:
        self._path, self._hub, self._default_timeout = path, hub, default_timeout
        self._notify = notify
        self._busy = asyncio.Lock()
        self.current: dict[str, ExternalServer] = {}

    def load(self, taken: frozenset[str]) -> dict[str, ExternalServer]:
        """Read the file at boot. Bad entries are reported, the others are used."""
        reading = self._read(taken)
        self.current = reading.servers if reading is not None else {}
        return self.current

    async def reload(self, taken: frozenset[str], apply: ServerActions) -> None:
        """Start new servers, restart changed ones, stop removed ones; leave all others alone."""
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
                self._notify(ToolboxNotice("servers_changed", f"External servers have changed. {' '.join(parts)}"))

    async def decide(self, name: str, decision: Callable[[ExternalServer], bool], apply: ServerActions) -> None:
        """Apply a person's decision about one server, and restart it if the decision changed anything."""
        async with self._busy:
            server = self.find(name)
            if decision(server):
                await apply.remove(name)
                await apply.add(server)

    def find(self, name: str) -> ExternalServer:
        """The server as the file has it; NotFound for any other, built-in ones included."""
        server = self.current.get(name)
        if server is None:
            raise NotFound(f"There is no external server called {name}.", hint=f"See {self._path.name}.")
        return server

    def _read(self, taken: frozenset[str]) -> ReadEntries | None:
        try:
            text = self._path.read_text(encoding="utf-8")
            reading = read_entries(text, self._hub, taken, self._default_timeout)
        except FileNotFoundError:
            return ReadEntries({})
        except (OSError, UnicodeDecodeError, UnreadableEntries) as error:
            self._report_mistake(f"{self._path.name} can not be used: {error}. The servers of before stay as they are.")
            return None
        for mistake in reading.mistakes:
            self._report_mistake(f"{self._path.name}: {mistake} This entry is left out.")
        for server in reading.servers.values():
            if server.problem is not None:
                self._notify(ToolboxNotice("server_disabled", server.problem, server.profile.name))
        return reading

    def _report_mistake(self, text: str) -> None:
        _log.warning("%s", text)
        self._notify(ToolboxNotice("external_config", text))


class ServerAdmission:
    """The owner's decisions about external servers. They take effect at once."""

    def __init__(
        self, pinning: PinChecker, servers: ExternalServers, apply: ServerActions, audit: AuditTrail | None
    ) -> None:
        self._pinning, self._servers, self._apply, self._audit = pinning, servers, apply, audit

    def review(self, name: str) -> ServerReview:
        """What a person should see before accepting a server; NotFound for a built-in one."""
        return self._pinning.review(self._servers.find(name))

    async def accept(self, name: str, digest: str | None = None) -> None:
        """Accept what holds the server back; with `digest`, only if it is still what the person reviewed."""

        def record_acceptance(server: ExternalServer) -> bool:
            hold = self._pinning.accept(server, digest)
            if hold is not None:
                audit_admission(self._audit, name, "accepted", hold.digest)
            return hold is not None

        await self._servers.decide(name, record_acceptance, self._apply)

    async def reject(self, name: str) -> None:
        """Stop the server until it is accepted."""

        def record_rejection(server: ExternalServer) -> bool:
            self._pinning.reject(server)
            audit_admission(self._audit, name, "rejected", "")
            return True

        await self._servers.decide(name, record_rejection, self._apply)


def audit_admission(audit: AuditTrail | None, server: str, what: str, digest: str) -> None:
    if audit is not None:
        audit.note("server", {"server": server, "what": what, "digest": digest})


class HoldNotifier:
    """Notifies people and the audit that a server is held back."""

    def __init__(self, notify: NoticeListener, audit: AuditTrail | None) -> None:
        self._notify, self._audit = notify, audit

    def __call__(self, name: str, hold: ServerHold) -> None:
        audit_admission(self._audit, name, hold.state, hold.digest)
        self._notify(ToolboxNotice("server_held", f"{name} is held back: {hold.sentence}", name))


@dataclass(frozen=True, slots=True)
class ServerDiff:
    """Servers added and removed since the last start."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def sentence(self) -> str:
        parts = [
            f"{title}: {', '.join(names)}."
            for title, names in (("New servers", self.added), ("Servers that are gone", self.removed))
            if names
        ]
        return " ".join(parts)


class KnownServers:
    """The file `last-known-mcps.json`. Without it there is nothing to compare, and nothing is reported."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def compare(self, names: Iterable[str]) -> ServerDiff:
        now = set(names)
        before = self._load()
        if before is None:
            return ServerDiff()
        return ServerDiff(tuple(sorted(now - before)), tuple(sorted(before - now)))

    def remember(self, tools: Mapping[str, int | None]) -> None:
        """Keep the servers with the number of their tools; None keeps the number of before, as for one that is down."""
        before = self.tool_counts() or {}
        counts = {name: before.get(name, 0) if count is None else count for name, count in sorted(tools.items())}
        if self._load() == set(counts) and before == counts:
            return
        try:
            write_atomically(self._path, json.dumps({"servers": list(counts), "tools": counts}, indent=2) + "\n")
        except OSError as error:
            _log.warning("%s could not be written: %s", self._path.name, error.strerror)

    def tool_counts(self) -> dict[str, int] | None:
        """How many tools each server had when it last ran; None if that is not known."""
        counts = self._read("tools")
        if not isinstance(counts, dict):
            return None
        found = cast("dict[str, object]", counts)
        return {name: count for name, count in found.items() if isinstance(count, int)}

    def _load(self) -> set[str] | None:
        names = self._read("servers")
        if not isinstance(names, list):
            return None
        return {name for name in cast("list[object]", names) if isinstance(name, str)}

    def _read(self, field: str) -> object:
        try:
            parsed: object = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return cast("dict[str, object]", parsed).get(field) if isinstance(parsed, dict) else None


_FOLDER_SECONDS = 5.0


class _Awatch(Protocol):
    def __call__(
        self, *paths: Path, watch_filter: Callable[[object, str], bool], debounce: int, step: int, recursive: bool
    ) -> AsyncIterator[set[object]]: ...


class FileWatcher:
    """Calls back when the file has not changed again for `quiet_ms`. Watches the folder, not the file."""

    def __init__(self, path: Path, quiet_ms: int, on_change: Callable[[], Awaitable[None]]) -> None:
        self._path, self._quiet_ms, self._on_change = path, quiet_ms, on_change
        self._seen = self._content()
        self._tasks = BackgroundTasks()

    def start(self) -> None:
        self._tasks.start(self._watch())

    async def stop(self) -> None:
        await self._tasks.stop()

    def _content(self) -> bytes | None:
        try:
            return self._path.read_bytes()
        except OSError:
            return None

    async def _watch(self) -> None:
        # Imported here, in a thread, so that the boot does not wait for it.
        library = await asyncio.to_thread(importlib.import_module, "watchfiles")
        awatch = cast("_Awatch", library.awatch)
        while True:
            folders = {folder for folder in (self._path.parent, self._path.resolve().parent) if folder.is_dir()}
            if not folders:
                await asyncio.sleep(_FOLDER_SECONDS)
                await self._check_content()
                continue
            try:
                changes = awatch(
                    *folders,
                    watch_filter=lambda _, name: Path(name).name in (self._path.name, self._path.resolve().name),
                    debounce=4 * self._quiet_ms,
                    step=self._quiet_ms,
                    recursive=False,
                )
                await self._follow(changes)
            except (OSError, RuntimeError) as error:  # the folder went away, or the system ran out of watches
                _log.warning("%s cannot be watched: %s", self._path, error)
                await asyncio.sleep(_FOLDER_SECONDS)

    async def _follow(self, changes: AsyncIterator[set[object]]) -> None:
        """Check when the watch has started and after each change; changes during a check are seen by the next."""
        while True:
            change = asyncio.ensure_future(anext(changes, None))
            try:
                await asyncio.sleep(0)  # starts the watch
                await self._check_content()
                if await change is None:
                    return
            finally:
                change.cancel()

    async def _check_content(self) -> None:
        content = self._content()
        if content != self._seen:
            self._seen = content
            try:
                await self._on_change()
            except Exception:  # noqa: BLE001  anyone may write the file: the next change must be seen too
                _log.exception("a change of %s could not be applied", self._path.name)
