"""Server-sent events for one reader: what it missed from the store, then what happens, without a gap or a double."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from annabelle.hub.events.fanout import Fanout, Listener, encode
from annabelle.store import events as stored
from annabelle.store.database import Database

HEARTBEAT_SECONDS = 15.0
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Reader:
    """Whose events are read, of which thread (all when None), and after which one."""

    user_id: str
    thread_id: str | None
    after: int


async def stream(
    reader: Reader, database: Database, fanout: Fanout, heartbeat: float = HEARTBEAT_SECONDS
) -> AsyncIterator[bytes]:
    """The reader's events until it leaves or the hub stops."""
    # Listening starts before reading, so nothing can fall between the two; what both bring is told apart by number.
    listener = fanout.listen(reader.user_id, reader.thread_id)
    position = reader.after
    try:
        yield b"retry: 1000\n\n"
        behind = True
        while True:
            if behind:
                async for seq, line in _missed(reader, position, database):
                    position = seq
                    yield line
            for told in listener.take():
                if told.seq > position:
                    position = told.seq
                    yield told.line
            behind = _caught_up_is_needed(listener)
            if listener.closed:
                return
            if not behind and not await listener.wait(heartbeat):
                yield b": still here\n\n"
    finally:
        fanout.leave(listener)


def _caught_up_is_needed(listener: Listener) -> bool:
    if not listener.fell_behind:
        return False
    # Reset before the store is read: whatever is told from here on is queued again.
    listener.fell_behind = False
    return True


async def _missed(reader: Reader, after: int, database: Database) -> AsyncIterator[tuple[int, bytes]]:
    while True:
        page = await database.read(
            lambda conn, seq=after: stored.after(conn, reader.thread_id, reader.user_id, seq, _PAGE)
        )
        for event in page:
            after = event.seq
            yield event.seq, encode(event)
        if len(page) < _PAGE:
            return
