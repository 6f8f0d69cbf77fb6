"""Takes questions back when what they were asked for is not wanted any more: stopped, cleared or forgotten (I-28)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from annabelle.core.ports import Audit
from annabelle.hub.approvals.ending import Ended, end_waiting
from annabelle.hub.events.log import EventLog, Written
from annabelle.store import open_questions
from annabelle.store.database import Database
from annabelle.store.open_questions import Where


@dataclass(frozen=True, slots=True)
class Withdrawing:
    """Each turn that waits is ended in a transaction of its own, with a sentence in its thread."""

    database: Database
    events: EventLog
    audit: Audit | None = None

    async def withdraw(self, where: Where, why: str) -> int:
        """End everything that waits there; how many questions that were."""
        waiting = await self.database.read(lambda conn: open_questions.asking(conn, where))
        return sum([await self._end(message_id, why) for message_id in waiting])

    async def of_message(self, message_id: str, why: str) -> int:
        """End what the turn of one message waits for, also when it went on meanwhile and asked again."""
        return await self.withdraw(Where(turn=message_id), why)

    async def _end(self, message_id: str, why: str) -> int:
        def end(conn: Connection) -> Written[Ended]:
            ended = end_waiting(conn, message_id, "cancelled", why)
            return Written(ended, ended.user_id, ended.events)

        ended = await self.events.transact(end)
        ended.note(self.audit, "cancelled")
        return len(ended.questions)
