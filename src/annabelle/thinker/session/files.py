"""Sessions as JSON lines, one file per thread in the agent's folder.

Beside `THREAD.jsonl` stand `older/THREAD.jsonl`, the turns of this conversation that were summed up, and
`archive/THREAD.jsonl`, the conversations before it. What a kill left half done is finished when they are next read.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from annabelle.core import jsonl
from annabelle.core.errors import InvalidArguments, StorageTrouble
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject
from annabelle.thinker import failpoints
from annabelle.thinker.session.archive_file import ArchiveFile
from annabelle.thinker.session.archiving import archive_of, fresh_header
from annabelle.thinker.session.port import KEPT_TURNS, Ending
from annabelle.thinker.session.records import Archive, Compaction, Header, TurnRecord, archive_id, chars_of
from annabelle.thinker.session.state import Lines, Session

T = TypeVar("T")

_log = logging.getLogger(__name__)
_THREAD_ID = re.compile(r"[\w-]{1,120}")
_OPEN_THREADS = 64


@dataclass(slots=True)
class _Open:
    """What is held in memory of one thread, so that a long session costs no more than a short one."""

    session: Session = field(default_factory=Session)
    archives: Sequence[Archive] = ()
    seen: set[str] = field(default_factory=set[str])
    has_header: bool = False
    users: int = 0
    """Who works with it or waits to: as long as there is one, it is not put away."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    loaded: bool = False


class SessionFiles:
    """The sessions of one agent in `folder`. This process is the only one that writes there."""

    def __init__(self, folder: Path, agent_id: str, *, synchronous: bool = False) -> None:
        self._folder, self._agent_id, self._synchronous = folder, agent_id, synchronous
        self._open: OrderedDict[str, _Open] = OrderedDict()

    async def session(self, thread_id: str) -> Session:
        # Most turns find their thread in memory, and need no thread of the processor to look.
        known = self._opened(thread_id)
        return known.session if known.loaded else await self._with(thread_id, lambda opened: opened.session)

    async def append(self, thread_id: str, record: TurnRecord) -> None:
        def add(opened: _Open) -> None:
            if record.message_id in opened.seen:
                return
            lines = [record.line()]
            if not opened.has_header:
                lines.insert(0, Header(agent_id=self._agent_id, thread_id=thread_id).line())
            jsonl.append(self.path(thread_id), lines, durable=self._synchronous)
            opened.has_header = True
            opened.seen.add(record.message_id)
            opened.session = _longer(opened.session, record)

        await self._with(thread_id, add)

    async def open_turns(self, thread_id: str) -> list[TurnRecord]:
        return await self._with(thread_id, lambda _opened: self._lines(thread_id).turns)

    async def compact(self, thread_id: str, compaction: Compaction) -> bool:
        def replace(opened: _Open) -> bool:
            lines = self._lines(thread_id)
            if compaction.message_id not in lines.open:
                return False
            moved, kept = lines.up_to(compaction.message_id)
            self._set_aside(thread_id, [*lines.closed.values(), *moved])
            failpoint(failpoints.OLDER_KEPT)
            header = lines.header or Header(agent_id=self._agent_id, thread_id=thread_id)
            jsonl.rewrite(self.path(thread_id), [header.line(), compaction.line(), *lines.others, *kept])
            failpoint(failpoints.COMPACTED)
            self._fill(opened, thread_id)
            return True

        return await self._with(thread_id, replace)

    async def archive(self, thread_id: str, ending: Ending) -> Archive | None:
        def store(opened: _Open) -> Archive | None:
            if opened.session.last_message_id != ending.message_id:
                return None
            archive = archive_of(thread_id, ending, self._whole(thread_id))
            self._archived(thread_id).add(archive)
            failpoint(failpoints.ARCHIVED)
            self._start_afresh(thread_id)
            self._fill(opened, thread_id)
            return archive

        return await self._with(thread_id, store)

    async def archives(self, thread_id: str) -> Sequence[Archive]:
        known = self._opened(thread_id)
        return known.archives if known.loaded else await self._with(thread_id, lambda opened: opened.archives)

    async def archived_turns(self, thread_id: str) -> Mapping[str, Sequence[JsonObject]]:
        return await self._with(thread_id, lambda _opened: self._archived(thread_id).turns())

    async def threads(self) -> Mapping[str, str]:
        return await asyncio.to_thread(_stamps, self._folder)

    async def close(self) -> None:
        self._open.clear()

    def path(self, thread_id: str) -> Path:
        if _THREAD_ID.fullmatch(thread_id) is None:
            raise InvalidArguments(f"{thread_id[:130]!r} is not a thread id.", field="thread_id")
        return self._folder / f"{thread_id}.jsonl"

    def older_path(self, thread_id: str) -> Path:
        return self._folder / "older" / self.path(thread_id).name

    def _archived(self, thread_id: str) -> ArchiveFile:
        return ArchiveFile(self._folder / "archive" / self.path(thread_id).name)

    async def _with(self, thread_id: str, work: Callable[[_Open], T]) -> T:
        """Do something with a thread's files, alone with them until it is done, even if the asker goes away."""
        opened = self._opened(thread_id)
        opened.users += 1

        def act() -> T:
            if not opened.loaded:
                self._fill(opened, thread_id)
            return work(opened)

        async def alone() -> T:
            try:
                async with opened.lock:
                    return await asyncio.to_thread(act)
            except OSError as error:
                name = self.path(thread_id).name
                raise StorageTrouble(f"The session {name} can not be read: {error.strerror}.") from error
            finally:
                opened.users -= 1

        return await asyncio.shield(asyncio.create_task(alone()))

    def _opened(self, thread_id: str) -> _Open:
        opened = self._open.get(thread_id)
        if opened is None:
            opened = self._open[thread_id] = _Open()
            idle = [name for name, other in self._open.items() if not other.users and name != thread_id]
            for name in idle[: max(0, len(self._open) - _OPEN_THREADS)]:
                del self._open[name]
        self._open.move_to_end(thread_id)
        return opened

    def _fill(self, opened: _Open, thread_id: str) -> None:
        """Read the session, and finish what a killed process had begun."""
        lines = self._lines(thread_id)
        opened.archives = self._archived(thread_id).entries()
        last = next(reversed(lines.open), None)
        if last is not None and any(archive.id == archive_id(thread_id, last) for archive in opened.archives):
            self._start_afresh(thread_id)
            lines = self._lines(thread_id)
        older = Lines.read(_records(self.older_path(thread_id)))
        if older.open and lines.header is not None and next(reversed(older.open)) in lines.header.archived:
            self.older_path(thread_id).unlink()
            older = Lines()
        opened.session = lines.session(KEPT_TURNS)
        opened.seen = lines.message_ids | older.message_ids
        opened.has_header = lines.header is not None
        opened.loaded = True

    def _lines(self, thread_id: str) -> Lines:
        return Lines.read(_records(self.path(thread_id)))

    def _set_aside(self, thread_id: str, records: Sequence[JsonObject]) -> None:
        path = self.older_path(thread_id)
        known = Lines.read(_records(path)).message_ids
        jsonl.append(path, [record for record in records if record["message_id"] not in known])
        jsonl.sync_folder(path.parent)

    def _whole(self, thread_id: str) -> list[JsonObject]:
        """Every turn of the conversation as it was written, those that were summed up first."""
        lines, older = self._lines(thread_id), Lines.read(_records(self.older_path(thread_id)))
        turns = {name: raw for name, (_turn, raw) in older.open.items()}
        for name, raw in (*lines.closed.items(), *((name, raw) for name, (_turn, raw) in lines.open.items())):
            turns.setdefault(name, raw)
        return [*older.others, *lines.others, *turns.values()]

    def _start_afresh(self, thread_id: str) -> None:
        older = Lines.read(_records(self.older_path(thread_id)))
        header = fresh_header(self._agent_id, thread_id, self._lines(thread_id), older)
        jsonl.rewrite(self.path(thread_id), [header.line()])
        failpoint(failpoints.STARTED_AFRESH)
        self.older_path(thread_id).unlink(missing_ok=True)


def _longer(session: Session, record: TurnRecord) -> Session:
    return Session(
        turns=(*session.turns, record)[-KEPT_TURNS:],
        compaction=session.compaction,
        count=session.count + 1,
        chars=session.chars + chars_of(record),
        last_at=max(session.last_at, record.at) if session.last_at is not None else record.at,
    )


def _stamps(folder: Path) -> dict[str, str]:
    stamps: dict[str, str] = {}
    for path in folder.glob("*.jsonl") if folder.is_dir() else ():
        if _THREAD_ID.fullmatch(path.stem) is not None and path.is_file():
            found = path.stat()
            stamps[path.stem] = f"{found.st_mtime_ns}:{found.st_size}"
    return stamps


def _records(path: Path) -> list[JsonObject]:
    """The lines of a file. A file with new damage is copied aside before anything is repaired."""
    blob = path.read_bytes() if path.exists() else b""
    damage = _damage(blob)
    # Named after the damage: it stays in the file, and one copy of it is enough.
    aside = path.with_name(f"{path.name}.damaged-{hashlib.sha256(damage).hexdigest()[:16]}")
    if damage and not aside.exists():
        aside.write_bytes(blob)
        _log.warning("%s is damaged; a copy is kept as %s and what is readable is used", path.name, aside.name)
    return jsonl.load(path)


def _damage(blob: bytes) -> bytes:
    """The lines that can not be records, beside the one torn line a crash may leave at the end."""
    lines = [line for line in blob.split(b"\n") if line.strip()]
    if not blob.endswith(b"\n"):
        lines = lines[:-1]
    return b"\n".join(line for line in lines if not (line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}")))
