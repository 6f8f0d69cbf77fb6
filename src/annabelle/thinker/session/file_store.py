"""Sessions as JSON lines, one file per thread; `older/` holds compacted turns, `archive/` earlier conversations."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from annabelle.core import jsonl
from annabelle.core.errors import InvalidArguments, StorageTrouble
from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject
from annabelle.core.trace import SHOWN_IN_CHAT
from annabelle.thinker import failpoints
from annabelle.thinker.session.records import (
    Archive,
    Compaction,
    SessionHeader,
    SessionLines,
    SessionState,
    SessionTurn,
    build_archive_id,
    count_chars,
    parse_record,
)
from annabelle.thinker.session.session_store import (
    KEPT_TURNS,
    ConversationEnd,
    build_archive,
    build_fresh_header,
    is_turn_of,
    strip_archive,
)


class ArchiveFile:
    """The archive of one thread. Not cached."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, archive: Archive) -> None:
        """Append it durably; the same conversation again changes nothing."""
        if not self.contains(archive.id):
            jsonl.append_records(self._path, [archive.to_json()])
            jsonl.sync_folder(self._path.parent)

    def remove_turns(self, gone: frozenset[str]) -> None:
        known = list(self._read_all())
        left = [strip_archive(archive, gone) for archive in known]
        if left != known:
            jsonl.rewrite_records(self._path, [archive.to_json() for archive in left if archive is not None])

    def contains(self, archive_id: str) -> bool:
        return any(archive.id == archive_id for archive in self._read_all())

    def entries(self) -> list[Archive]:
        """Without their turns."""
        return [archive.model_copy(update={"turns": []}) for archive in self._read_all()]

    def turns(self) -> dict[str, list[JsonObject]]:
        return {archive.id: archive.turns for archive in self._read_all()}

    def _read_all(self) -> Iterator[Archive]:
        seen: set[str] = set()
        for record in jsonl.load_records(self._path):
            archive = parse_record(Archive, record) if record.get("type") == "archive" else None
            if archive is not None and archive.id not in seen:
                seen.add(archive.id)
                yield archive


T = TypeVar("T")

_log = logging.getLogger(__name__)
_THREAD_ID = re.compile(r"[\w-]{1,120}")
_OPEN_THREADS = 64


@dataclass(slots=True)
class _OpenThread:
    """The cached state of one thread, so that a long session costs no more than a short one."""

    session: SessionState = field(default_factory=SessionState)
    archives: Sequence[Archive] = ()
    seen: set[str] = field(default_factory=set[str])
    has_header: bool = False
    users: int = 0
    """Operations that use it or wait for it; it is not evicted while there are any."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    loaded: bool = False


class FileSessionStore:
    """The sessions of one agent in `folder`. Only this process writes there."""

    def __init__(self, folder: Path, agent_id: str, *, synchronous: bool = False) -> None:
        self._folder, self._agent_id, self._synchronous = folder, agent_id, synchronous
        self._open: OrderedDict[str, _OpenThread] = OrderedDict()

    async def session(self, thread_id: str) -> SessionState:
        # Usually cached, so that no worker thread is needed.
        known = self._get_thread(thread_id)
        return known.session if known.loaded else await self._run_exclusive(thread_id, lambda opened: opened.session)

    async def append(self, thread_id: str, record: SessionTurn) -> None:
        def add_record(opened: _OpenThread) -> None:
            if record.message_id in opened.seen:
                return
            lines = [record.to_json()]
            if not opened.has_header:
                lines.insert(0, SessionHeader(agent_id=self._agent_id, thread_id=thread_id).to_json())
            jsonl.append_records(self.path(thread_id), lines, durable=self._synchronous)
            opened.has_header = True
            opened.seen.add(record.message_id)
            opened.session = _append_turn(opened.session, record)

        await self._run_exclusive(thread_id, add_record)

    async def open_turns(self, thread_id: str) -> list[SessionTurn]:
        return await self._run_exclusive(thread_id, lambda _opened: self._read_lines(thread_id).turns)

    async def compact(self, thread_id: str, compaction: Compaction) -> bool:
        def replace_turns(opened: _OpenThread) -> bool:
            lines = self._read_lines(thread_id)
            if compaction.message_id not in lines.open:
                return False
            moved, kept = lines.split_after(compaction.message_id)
            self._move_to_older(thread_id, [*lines.closed.values(), *moved])
            failpoint(failpoints.OLDER_KEPT)
            header = lines.header or SessionHeader(agent_id=self._agent_id, thread_id=thread_id)
            jsonl.rewrite_records(self.path(thread_id), [header.to_json(), compaction.to_json(), *lines.others, *kept])
            failpoint(failpoints.COMPACTED)
            self._load_thread(opened, thread_id)
            return True

        return await self._run_exclusive(thread_id, replace_turns)

    async def archive(self, thread_id: str, ending: ConversationEnd) -> Archive | None:
        def store_archive(opened: _OpenThread) -> Archive | None:
            if opened.session.last_message_id != ending.message_id:
                return None
            archive = build_archive(thread_id, ending, self._all_records(thread_id))
            self._archive_file(thread_id).add(archive)
            failpoint(failpoints.ARCHIVED)
            self._start_fresh_file(thread_id)
            self._load_thread(opened, thread_id)
            return archive

        return await self._run_exclusive(thread_id, store_archive)

    async def remove_turns(self, thread_id: str, gone: frozenset[str]) -> None:
        def rewrite(opened: _OpenThread) -> None:
            self._archive_file(thread_id).remove_turns(gone)
            records, older = _records(self.path(thread_id)), _records(self.older_path(thread_id))
            left = [record for record in records if not is_turn_of(record, gone)]
            closed = SessionLines.parse(records).closed
            summarised = any(is_turn_of(record, gone) for record in older) or not gone.isdisjoint(closed)
            if summarised:
                # The summary tells of what is removed, so the other turns take its place again.
                left = [record for record in left if record.get("type") != "compaction"]
                kept = [record for record in older if not is_turn_of(record, gone)]
                headers = sum(record.get("type") == "header" for record in left[:1])
                left[headers:headers] = kept
            if left != records:
                jsonl.rewrite_records(self.path(thread_id), left)
            if summarised:
                self.older_path(thread_id).unlink(missing_ok=True)
            self._load_thread(opened, thread_id)

        await self._run_exclusive(thread_id, rewrite)

    async def archives(self, thread_id: str) -> Sequence[Archive]:
        known = self._get_thread(thread_id)
        return known.archives if known.loaded else await self._run_exclusive(thread_id, lambda opened: opened.archives)

    async def archived_turns(self, thread_id: str) -> Mapping[str, Sequence[JsonObject]]:
        return await self._run_exclusive(thread_id, lambda _opened: self._archive_file(thread_id).turns())

    async def threads(self) -> Mapping[str, str]:
        return await asyncio.to_thread(_read_stamps, self._folder)

    async def close(self) -> None:
        self._open.clear()

    def path(self, thread_id: str) -> Path:
        if _THREAD_ID.fullmatch(thread_id) is None:
            raise InvalidArguments(f"{thread_id[:130]!r} is not a thread id.", field="thread_id")
        return self._folder / f"{thread_id}.jsonl"

    def older_path(self, thread_id: str) -> Path:
        return self._folder / "older" / self.path(thread_id).name

    def _archive_file(self, thread_id: str) -> ArchiveFile:
        return ArchiveFile(self._folder / "archive" / self.path(thread_id).name)

    async def _run_exclusive(self, thread_id: str, operation: Callable[[_OpenThread], T]) -> T:
        """Run an operation on a thread's files exclusively, to its end even if the caller is cancelled."""
        opened = self._get_thread(thread_id)
        opened.users += 1

        def run_loaded() -> T:
            if not opened.loaded:
                self._load_thread(opened, thread_id)
            return operation(opened)

        async def run_locked() -> T:
            try:
                async with opened.lock:
                    return await asyncio.to_thread(run_loaded)
            except OSError as error:
                name = self.path(thread_id).name
                raise StorageTrouble(f"The session {name} can not be read: {error.strerror}.") from error
            finally:
                opened.users -= 1

        return await asyncio.shield(asyncio.create_task(run_locked()))

    def _get_thread(self, thread_id: str) -> _OpenThread:
        opened = self._open.get(thread_id)
        if opened is None:
            opened = self._open[thread_id] = _OpenThread()
            idle = [name for name, other in self._open.items() if not other.users and name != thread_id]
            for name in idle[: max(0, len(self._open) - _OPEN_THREADS)]:
                del self._open[name]
        self._open.move_to_end(thread_id)
        return opened

    def _load_thread(self, opened: _OpenThread, thread_id: str) -> None:
        """Read the session, and finish what a killed process had started."""
        lines = self._read_lines(thread_id)
        opened.archives = self._archive_file(thread_id).entries()
        last = next(reversed(lines.open), None)
        if last is not None and any(archive.id == build_archive_id(thread_id, last) for archive in opened.archives):
            self._start_fresh_file(thread_id)
            lines = self._read_lines(thread_id)
        older = SessionLines.parse(_records(self.older_path(thread_id)))
        if older.open and lines.header is not None and next(reversed(older.open)) in lines.header.archived:
            self.older_path(thread_id).unlink()
            older = SessionLines()
        opened.session = lines.to_state(KEPT_TURNS)
        opened.seen = lines.message_ids | older.message_ids
        opened.has_header = lines.header is not None
        opened.loaded = True

    def _read_lines(self, thread_id: str) -> SessionLines:
        return SessionLines.parse(_records(self.path(thread_id)))

    def _move_to_older(self, thread_id: str, records: Sequence[JsonObject]) -> None:
        path = self.older_path(thread_id)
        known = SessionLines.parse(_records(path)).message_ids
        jsonl.append_records(path, [record for record in records if record["message_id"] not in known])
        jsonl.sync_folder(path.parent)

    def _all_records(self, thread_id: str) -> list[JsonObject]:
        """Every record of the conversation, compacted turns first."""
        lines, older = self._read_lines(thread_id), SessionLines.parse(_records(self.older_path(thread_id)))
        turns = {name: raw for name, (_turn, raw) in older.open.items()}
        for name, raw in (*lines.closed.items(), *((name, raw) for name, (_turn, raw) in lines.open.items())):
            turns.setdefault(name, raw)
        return [*older.others, *lines.others, *turns.values()]

    def _start_fresh_file(self, thread_id: str) -> None:
        older = SessionLines.parse(_records(self.older_path(thread_id)))
        header = build_fresh_header(self._agent_id, thread_id, self._read_lines(thread_id), older)
        jsonl.rewrite_records(self.path(thread_id), [header.to_json()])
        failpoint(failpoints.STARTED_AFRESH)
        self.older_path(thread_id).unlink(missing_ok=True)


def _append_turn(session: SessionState, record: SessionTurn) -> SessionState:
    return SessionState(
        turns=(*session.turns, record)[-KEPT_TURNS:],
        compaction=session.compaction,
        count=session.count + 1,
        chars=session.chars + count_chars(record),
        last_at=max(session.last_at, record.at) if session.last_at is not None else record.at,
    )


def _read_stamps(folder: Path) -> dict[str, str]:
    stamps: dict[str, str] = {}
    for path in folder.glob("*.jsonl") if folder.is_dir() else ():
        if _THREAD_ID.fullmatch(path.stem) is not None and path.is_file():
            found = path.stat()
            stamps[path.stem] = f"{found.st_mtime_ns}:{found.st_size}"
    return stamps


def _records(path: Path) -> list[JsonObject]:
    """The records of a file. A damaged file is copied first, because repair drops lines."""
    blob = path.read_bytes() if path.exists() else b""
    damage = _find_damage(blob)
    # Named after the damage, so that it is copied once.
    aside = path.with_name(f"{path.name}.damaged-{hashlib.sha256(damage).hexdigest()[:16]}")
    if damage and not aside.exists():
        aside.write_bytes(blob)
        _log.warning(
            "The conversation %s was damaged; it is kept as %s, and what is readable goes on.",
            path.name,
            aside.name,
            extra=SHOWN_IN_CHAT,
        )
    return jsonl.load_records(path)


def _find_damage(blob: bytes) -> bytes:
    """The lines that cannot be records, without the torn last line a crash may leave."""
    lines = [line for line in blob.split(b"\n") if line.strip()]
    if not blob.endswith(b"\n"):
        lines = lines[:-1]
    return b"\n".join(line for line in lines if not (line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}")))
