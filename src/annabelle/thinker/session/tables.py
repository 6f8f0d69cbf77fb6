"""Sessions in the shared PostgreSQL, so that any node can go on with a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject
from annabelle.store import archives, sessions
from annabelle.store.database import Database
from annabelle.thinker import failpoints
from annabelle.thinker.session.archiving import archive_of, fresh_header
from annabelle.thinker.session.port import KEPT_TURNS, Ending
from annabelle.thinker.session.records import Archive, Compaction, Header, TurnRecord, read_as
from annabelle.thinker.session.state import Lines, Session

_KNOWN_THREADS = 64
_OURS = ("header", "compaction", "cleared")


class SessionTables:
    """The sessions of one agent. No session is held in memory: another node may have had the last turn.

    Each change is one transaction, so nothing is dropped before what replaces it is there.
    """

    def __init__(self, database: Database, agent_id: str) -> None:
        self._database, self._agent_id = database, agent_id
        # An archive never changes; a thread is read again when it has another one.
        self._archives: dict[str, tuple[list[str], list[Archive]]] = {}

    async def session(self, thread_id: str) -> Session:
        return (await self._read(thread_id)).session(KEPT_TURNS)

    async def open_turns(self, thread_id: str) -> list[TurnRecord]:
        return (await self._read(thread_id)).turns

    async def append(self, thread_id: str, record: TurnRecord) -> None:
        def add(connection: Connection) -> None:
            sessions.lock(connection, self._agent_id, thread_id)
            known = self._lines(connection, thread_id)
            # The latest turns are never summed up, so one that is replayed is among these, or in the header.
            if record.message_id in known.message_ids:
                return
            lines = [record.line()]
            if known.header is None:
                lines.insert(0, Header(agent_id=self._agent_id, thread_id=thread_id).line())
            sessions.append(connection, self._agent_id, thread_id, lines, user_id=record.user_id)

        await self._database.write(add)

    async def compact(self, thread_id: str, compaction: Compaction) -> bool:
        def replace(connection: Connection) -> bool:
            sessions.lock(connection, self._agent_id, thread_id)
            rows = sessions.load(connection, self._agent_id, thread_id)
            lines = Lines.read(record for _position, record in rows)
            if compaction.message_id not in lines.open:
                return False
            user_id = lines.open[compaction.message_id][0].user_id
            moved = {str(record["message_id"]) for record in lines.up_to(compaction.message_id)[0]}
            turns = [at for at, record in rows if record.get("type") == "turn" and record.get("message_id") in moved]
            sessions.move(connection, turns, sessions.older(thread_id))
            failpoint(failpoints.OLDER_KEPT)
            sessions.remove(connection, [at for at, record in rows if record.get("type") == "compaction"])
            sessions.append(connection, self._agent_id, thread_id, [compaction.line()], user_id=user_id)
            return True

        done = await self._database.write(replace)
        failpoint(failpoints.COMPACTED)
        return done

    async def archive(self, thread_id: str, ending: Ending) -> Archive | None:
        def store(connection: Connection) -> Archive | None:
            sessions.lock(connection, self._agent_id, thread_id)
            rows = sessions.load(connection, self._agent_id, thread_id)
            aside = sessions.load(connection, self._agent_id, sessions.older(thread_id))
            lines, older = (Lines.read(record for _at, record in some) for some in (rows, aside))
            if next(reversed(lines.open), None) != ending.message_id:
                return None
            whole = [record for _at, record in (*aside, *rows) if record.get("type") not in _OURS]
            archive = archive_of(thread_id, ending, whole)
            self._add(connection, archive)
            failpoint(failpoints.ARCHIVED)
            sessions.remove(connection, [at for at, _record in (*aside, *rows)])
            header = fresh_header(self._agent_id, thread_id, lines, older).line()
            sessions.append(connection, self._agent_id, thread_id, [header], user_id=archive.user_id)
            return archive

        done = await self._database.write(store)
        failpoint(failpoints.STARTED_AFRESH)
        return done

    async def archives(self, thread_id: str) -> Sequence[Archive]:
        ids = await self._database.read(lambda connection: archives.ids(connection, self._agent_id, thread_id))
        known, entries = self._archives.get(thread_id, ([], []))
        if ids != known:
            entries = [archive.model_copy(update={"turns": []}) for archive in await self._archived(thread_id)]
            self._archives[thread_id] = ids, entries
            for name in list(self._archives)[:-_KNOWN_THREADS]:
                del self._archives[name]
        return entries

    async def archived_turns(self, thread_id: str) -> Mapping[str, Sequence[JsonObject]]:
        return {archive.id: archive.turns for archive in await self._archived(thread_id)}

    async def threads(self) -> Mapping[str, str]:
        return await self._database.read(lambda connection: sessions.threads(connection, self._agent_id))

    async def close(self) -> None:
        await self._database.close()

    async def _archived(self, thread_id: str) -> list[Archive]:
        records = await self._database.read(lambda conn: archives.load(conn, self._agent_id, thread_id))
        return [archive for archive in (read_as(Archive, record) for record in records) if archive is not None]

    async def _read(self, thread_id: str) -> Lines:
        return await self._database.read(lambda connection: self._lines(connection, thread_id))

    def _lines(self, connection: Connection, thread_id: str) -> Lines:
        rows = sessions.load(connection, self._agent_id, thread_id)
        return Lines.read(record for _position, record in rows)

    def _add(self, connection: Connection, archive: Archive) -> None:
        archives.add(
            connection,
            f"{self._agent_id}:{archive.id}",
            self._agent_id,
            archive.line(),
            thread_id=archive.thread_id,
            user_id=archive.user_id,
            ended_at=archive.ended_at,
        )
