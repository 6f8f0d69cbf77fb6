"""Sessions in the shared PostgreSQL, so that any node can go on with a conversation."""

from __future__ import annotations

from sqlalchemy import Connection

from annabelle.core.contract import TurnBrief
from annabelle.core.tools import JsonObject
from annabelle.store import sessions
from annabelle.store.database import Database
from annabelle.thinker.session.port import KEPT_TURNS, SessionView
from annabelle.thinker.session.records import Cleared, Header, TurnRecord, message_ids, turns_of


class SessionTables:
    """The sessions of one agent. Nothing is held in memory: another node may have had the last turn."""

    def __init__(self, database: Database, agent_id: str) -> None:
        self._database, self._agent_id = database, agent_id

    async def load(self, brief: TurnBrief) -> SessionView:
        turns = await self.turns(brief.thread_id)
        return SessionView([turn for turn in turns if turn.message_id != brief.message_id])

    async def turns(self, thread_id: str) -> list[TurnRecord]:
        return turns_of(await self._database.read(lambda connection: self._latest(connection, thread_id)))

    async def append(self, thread_id: str, record: TurnRecord) -> None:
        def add(connection: Connection) -> None:
            known = self._latest(connection, thread_id)
            if record.message_id in message_ids(known):
                return
            lines = [record.model_dump(mode="json", exclude_none=True)]
            if not known:
                lines.insert(0, self._header(thread_id))
            sessions.append(connection, self._agent_id, thread_id, lines, user_id=record.user_id)

        await self._database.write(add)

    async def clear(self, thread_id: str) -> None:
        def mark(connection: Connection) -> None:
            turns = turns_of(self._latest(connection, thread_id))
            if turns:
                cleared: list[JsonObject] = [Cleared().model_dump(mode="json")]
                sessions.append(connection, self._agent_id, thread_id, cleared, user_id=turns[-1].user_id)

        await self._database.write(mark)

    async def close(self) -> None:
        await self._database.close()

    def _latest(self, connection: Connection, thread_id: str) -> list[JsonObject]:
        # A turn is replayed soon or never, so what it might repeat is among the latest records too.
        return sessions.load(connection, self._agent_id, thread_id, latest=KEPT_TURNS)

    def _header(self, thread_id: str) -> JsonObject:
        return Header(agent_id=self._agent_id, thread_id=thread_id).model_dump(mode="json")
