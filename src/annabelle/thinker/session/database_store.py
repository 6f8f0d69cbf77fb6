"""Sessions in the shared PostgreSQL, so that any node can continue a conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from annabelle.core.failpoints import failpoint
from annabelle.core.tools import JsonObject
from annabelle.store import sessions
from annabelle.store.database import Database
from annabelle.thinker import failpoints
from annabelle.thinker.session.records import (
    Archive,
    Compaction,
    SessionHeader,
    SessionLines,
    SessionState,
    SessionTurn,
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

_KNOWN_THREADS = 64
_INTERNAL_TYPES = ("header", "compaction", "cleared")


class DatabaseSessionStore:
    """The sessions of one agent. Sessions are not cached, because another node may have run the last turn.

    Each change is one transaction, so nothing is dropped before its replacement is stored.
    """

    def __init__(self, database: Database, agent_id: str) -> None:
        self._database, self._agent_id = database, agent_id
        # Cached by thread with the versions of its archives, because another node may have removed turns.
        self._archives: dict[str, tuple[list[tuple[str, str]], list[Archive]]] = {}

    async def session(self, thread_id: str) -> SessionState:
        return (await self._read_lines(thread_id)).to_state(KEPT_TURNS)

    async def open_turns(self, thread_id: str) -> list[SessionTurn]:
        return (await self._read_lines(thread_id)).turns

    async def append(self, thread_id: str, record: SessionTurn) -> None:
        def add_record(connection: Connection) -> None:
            sessions.lock_session(connection, self._agent_id, thread_id)
            known = self._load_lines(connection, thread_id)
            # The latest turns are never compacted, so a replayed one is among these or in the header.
            if record.message_id in known.message_ids:
                return
            lines = [record.to_json()]
            if known.header is None:
                lines.insert(0, SessionHeader(agent_id=self._agent_id, thread_id=thread_id).to_json())
            sessions.append_session(connection, self._agent_id, thread_id, lines, user_id=record.user_id)

        await self._database.write(add_record)

    async def compact(self, thread_id: str, compaction: Compaction) -> bool:
        def replace_turns(connection: Connection) -> bool:
            sessions.lock_session(connection, self._agent_id, thread_id)
            rows = sessions.load_session(connection, self._agent_id, thread_id)
            lines = SessionLines.parse(record for _position, record in rows)
            if compaction.message_id not in lines.open:
                return False
            user_id = lines.open[compaction.message_id][0].user_id
            moved = {str(record["message_id"]) for record in lines.split_after(compaction.message_id)[0]}
            turns = [at for at, record in rows if record.get("type") == "turn" and record.get("message_id") in moved]
            sessions.move_records(connection, turns, sessions.summarised_thread_id(thread_id))
            failpoint(failpoints.OLDER_KEPT)
            sessions.remove_records(connection, [at for at, record in rows if record.get("type") == "compaction"])
            sessions.append_session(connection, self._agent_id, thread_id, [compaction.to_json()], user_id=user_id)
            return True

        done = await self._database.write(replace_turns)
        failpoint(failpoints.COMPACTED)
        return done

    async def archive(self, thread_id: str, ending: ConversationEnd) -> Archive | None:
        def store_archive(connection: Connection) -> Archive | None:
            sessions.lock_session(connection, self._agent_id, thread_id)
            rows = sessions.load_session(connection, self._agent_id, thread_id)
            aside = sessions.load_session(connection, self._agent_id, sessions.summarised_thread_id(thread_id))
            lines, older = (SessionLines.parse(record for _at, record in some) for some in (rows, aside))
            if next(reversed(lines.open), None) != ending.message_id:
                return None
            whole = [record for _at, record in (*aside, *rows) if record.get("type") not in _INTERNAL_TYPES]
            archive = build_archive(thread_id, ending, whole)
            self._insert_archive(connection, archive)
            failpoint(failpoints.ARCHIVED)
            sessions.remove_records(connection, [at for at, _record in (*aside, *rows)])
            header = build_fresh_header(self._agent_id, thread_id, lines, older).to_json()
            sessions.append_session(connection, self._agent_id, thread_id, [header], user_id=archive.user_id)
            return archive

        done = await self._database.write(store_archive)
        failpoint(failpoints.STARTED_AFRESH)
        return done

    async def remove_turns(self, thread_id: str, gone: frozenset[str]) -> None:
        def remove(connection: Connection) -> None:
            sessions.lock_session(connection, self._agent_id, thread_id)
            for row_id, record in sessions.load_archive_rows(connection, self._agent_id, thread_id):
                archive = parse_record(Archive, record)
                left = None if archive is None else strip_archive(archive, gone)
                if left != archive:
                    sessions.replace_archive(connection, row_id, None if left is None else left.to_json())
            rows = sessions.load_session(connection, self._agent_id, thread_id)
            aside = sessions.load_session(connection, self._agent_id, sessions.summarised_thread_id(thread_id))
            unwanted = [at for at, record in (*rows, *aside) if is_turn_of(record, gone)]
            if any(is_turn_of(record, gone) for _at, record in aside):
                # The summary tells of what is removed, so the other turns take its place again.
                unwanted += [at for at, record in rows if record.get("type") == "compaction"]
                sessions.move_records(connection, [at for at, _record in aside], thread_id)
            sessions.remove_records(connection, unwanted)

        await self._database.write(remove)

    async def archives(self, thread_id: str) -> Sequence[Archive]:
        versions = await self._database.read(
            lambda connection: sessions.list_archive_versions(connection, self._agent_id, thread_id)
        )
        known, entries = self._archives.get(thread_id, ([], []))
        if versions != known:
            entries = [archive.model_copy(update={"turns": []}) for archive in await self._load_archives(thread_id)]
            self._archives[thread_id] = versions, entries
            for name in list(self._archives)[:-_KNOWN_THREADS]:
                del self._archives[name]
        return entries

    async def archived_turns(self, thread_id: str) -> Mapping[str, Sequence[JsonObject]]:
        return {archive.id: archive.turns for archive in await self._load_archives(thread_id)}

    async def threads(self) -> Mapping[str, str]:
        return await self._database.read(lambda connection: sessions.list_session_threads(connection, self._agent_id))

    async def close(self) -> None:
        await self._database.close()

    async def _load_archives(self, thread_id: str) -> list[Archive]:
        records = await self._database.read(lambda conn: sessions.load_archives(conn, self._agent_id, thread_id))
        return [archive for archive in (parse_record(Archive, record) for record in records) if archive is not None]

    async def _read_lines(self, thread_id: str) -> SessionLines:
        return await self._database.read(lambda connection: self._load_lines(connection, thread_id))

    def _load_lines(self, connection: Connection, thread_id: str) -> SessionLines:
        rows = sessions.load_session(connection, self._agent_id, thread_id)
        return SessionLines.parse(record for _position, record in rows)

    def _insert_archive(self, connection: Connection, archive: Archive) -> None:
        sessions.add_archive(
            connection,
            f"{self._agent_id}:{archive.id}",
            self._agent_id,
            archive.to_json(),
            thread_id=archive.thread_id,
            user_id=archive.user_id,
            ended_at=archive.ended_at,
        )
