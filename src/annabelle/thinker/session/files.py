"""Sessions as JSON lines, one file per thread in the agent's folder."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from annabelle.core import jsonl
from annabelle.core.contract import TurnBrief
from annabelle.core.errors import InvalidArguments, StorageTrouble
from annabelle.thinker.session.port import KEPT_TURNS, SessionView
from annabelle.thinker.session.records import Cleared, Header, TurnRecord, message_ids, turns_of

_log = logging.getLogger(__name__)
_THREAD_ID = re.compile(r"[\w-]{1,120}")
_OPEN_THREADS = 64


@dataclass(slots=True)
class _Session:
    """What is held in memory of one thread, so that a long session costs no more than a short one."""

    turns: deque[TurnRecord] = field(default_factory=lambda: deque[TurnRecord](maxlen=KEPT_TURNS))
    seen: set[str] = field(default_factory=set[str])
    has_header: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    loaded: bool = False


class SessionFiles:
    """The sessions of one agent in `folder`. This process is the only one that writes there."""

    def __init__(self, folder: Path, agent_id: str, *, synchronous: bool = False) -> None:
        self._folder, self._agent_id, self._synchronous = folder, agent_id, synchronous
        self._open: OrderedDict[str, _Session] = OrderedDict()

    async def load(self, brief: TurnBrief) -> SessionView:
        turns = await self.turns(brief.thread_id)
        return SessionView([turn for turn in turns if turn.message_id != brief.message_id])

    async def turns(self, thread_id: str) -> list[TurnRecord]:
        session = self._session(thread_id)
        async with session.lock:
            await self._load(session, thread_id)
            return list(session.turns)

    async def append(self, thread_id: str, record: TurnRecord) -> None:
        session = self._session(thread_id)
        async with session.lock:
            await self._load(session, thread_id)
            if record.message_id in session.seen:
                return
            await self._write(session, thread_id, record)
            session.turns.append(record)
            session.seen.add(record.message_id)

    async def clear(self, thread_id: str) -> None:
        session = self._session(thread_id)
        async with session.lock:
            await self._load(session, thread_id)
            if session.turns:
                await self._write(session, thread_id, Cleared())
                session.turns.clear()

    async def close(self) -> None:
        self._open.clear()

    def path(self, thread_id: str) -> Path:
        if _THREAD_ID.fullmatch(thread_id) is None:
            raise InvalidArguments(f"{thread_id[:130]!r} is not a thread id.", field="thread_id")
        return self._folder / f"{thread_id}.jsonl"

    def _session(self, thread_id: str) -> _Session:
        session = self._open.get(thread_id)
        if session is None:
            session = self._open[thread_id] = _Session()
            idle = [name for name, other in self._open.items() if not other.lock.locked() and name != thread_id]
            for name in idle[: max(0, len(self._open) - _OPEN_THREADS)]:
                del self._open[name]
        self._open.move_to_end(thread_id)
        return session

    async def _load(self, session: _Session, thread_id: str) -> None:
        if not session.loaded:
            await asyncio.to_thread(_read, self.path(thread_id), session)
            session.loaded = True

    async def _write(self, session: _Session, thread_id: str, record: BaseModel) -> None:
        records = [record.model_dump(mode="json", exclude_none=True)]
        if not session.has_header:
            records.insert(0, Header(agent_id=self._agent_id, thread_id=thread_id).model_dump(mode="json"))
        await asyncio.to_thread(jsonl.append, self.path(thread_id), records, durable=self._synchronous)
        session.has_header = True


def _read(path: Path, session: _Session) -> None:
    """Fill the session from its file. A file with new damage is copied aside before anything is repaired."""
    try:
        blob = path.read_bytes() if path.exists() else b""
        damage = _damage(blob)
        # Named after the damage: it stays in the file, and one copy of it is enough.
        aside = path.with_name(f"{path.name}.damaged-{hashlib.sha256(damage).hexdigest()[:16]}")
        if damage and not aside.exists():
            aside.write_bytes(blob)
            _log.warning("%s is damaged; a copy is kept as %s and what is readable is used", path.name, aside.name)
        records = jsonl.load(path)
    except OSError as error:
        raise StorageTrouble(f"The session {path.name} can not be read: {error.strerror}.") from error
    session.turns.extend(turns_of(records))
    session.seen = message_ids(records)
    session.has_header = any(record.get("type") == "header" for record in records)


def _damage(blob: bytes) -> bytes:
    """The lines that can not be records, beside the one torn line a crash may leave at the end."""
    lines = [line for line in blob.split(b"\n") if line.strip()]
    if not blob.endswith(b"\n"):
        lines = lines[:-1]
    return b"\n".join(line for line in lines if not (line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}")))
