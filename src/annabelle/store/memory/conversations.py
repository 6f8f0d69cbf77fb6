"""Conversation turns; each delivered turn is stored once (MEM-12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, and_, bindparam, select, update

from annabelle.core.messages import now
from annabelle.core.trust import Trust
from annabelle.store.memory import text_index
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import load_row, read_by_id, row_parameters, rows_by_id
from annabelle.store.memory.tables import conversations
from annabelle.store.portable_sql import InsertNew

_columns = conversations.c
_insert = InsertNew(conversations, whole_rows=True)
_owned = (_columns.user_id == bindparam("user_id"), _columns.agent_id == bindparam("agent_id"))
_same = select(conversations).where(*_owned, _columns.message_id == bindparam("message_id"))
_get = select(conversations).where(rows_by_id(conversations))
_mark = (
    update(conversations)
    .where(rows_by_id(conversations), _columns.extracted_at.is_(None))
    .values(extracted_at=bindparam("at"))
)


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn before it has an id."""

    session_id: str
    user_message: str
    agent_response: str
    said_at: datetime
    speaker: str = ""
    tags: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    trust: Trust = "trusted"
    message_id: str | None = None

    def search_text(self) -> str:
        """The text it is indexed under, by words and by meaning."""
        return "\n".join(part for part in (self.user_message, self.agent_response) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn(NewTurn):
    id: int
    created_at: datetime
    extracted_at: datetime | None

    def search_context(self) -> str:
        """Who said it and when, as words that people search for."""
        return f"{self.speaker} {self.said_at:%A %d %B %Y}".strip()

    def position(self, owner: Owner) -> ConversationPosition:
        asks = not self.agent_response and self.user_message.rstrip().endswith("?")
        return ConversationPosition(self.id, owner, self.session_id, self.speaker, self.said_at, asks)


@dataclass(frozen=True, slots=True)
class ConversationPosition:
    """What search needs to know about a turn besides its text."""

    id: int
    owner: Owner
    session_id: str
    speaker: str
    said_at: datetime
    asks: bool
    """Whether it ends with an unanswered question."""


def add_turn(connection: Connection, owner: Owner, new: NewTurn) -> tuple[StoredTurn, bool]:
    """Stores and indexes a turn; the flag says whether it was new. A repeated message returns the first row."""
    values = {**owner.columns(), **asdict(new), "created_at": now(), "extracted_at": None}
    row = _insert.insert(connection, values)
    if row is None:
        keys = {**owner.columns(), "message_id": new.message_id}
        return load_turn(connection.execute(_same, keys).mappings().one()), False
    turn = load_turn(row)
    index_turn(connection, owner, turn)
    return turn, True


def index_turn(connection: Connection, owner: Owner, turn: StoredTurn) -> None:
    """Indexes a turn again after its text changed."""
    text_index.index_row(connection, "conversation", owner, turn.id, turn.search_text(), turn.search_context())


def get_turns(connection: Connection, owner: Owner, ids: Iterable[int]) -> dict[int, StoredTurn]:
    """Returns turns by id, leaving out those of other owners."""
    return {row["id"]: load_turn(row) for row in read_by_id(connection, _get, owner, ids)}


def list_unextracted(connection: Connection, owner: Owner, session_id: str | None, limit: int) -> list[StoredTurn]:
    """Lists the last turns without extracted facts, oldest first."""
    query = select(conversations).where(owner.row_filter(conversations), _columns.extracted_at.is_(None))
    if session_id is not None:
        query = query.where(_columns.session_id == session_id)
    rows = connection.execute(query.order_by(_columns.id.desc()).limit(limit)).mappings().all()
    return [load_turn(row) for row in reversed(rows)]


def mark_extracted(connection: Connection, owner: Owner, ids: Sequence[int]) -> int:
    """Marks turns as read for facts; returns how many of this owner's were not marked before."""
    return connection.execute(_mark, {**row_parameters(owner, ids), "at": now()}).rowcount if ids else 0


def list_positions(connection: Connection, after: int = 0) -> Iterator[ConversationPosition]:
    """Yields the positions of all owners' turns in stored order, for loading the search index."""
    asks = and_(_columns.agent_response == "", _columns.user_message.like("%?"))
    wanted = (_columns.id, _columns.user_id, _columns.agent_id, _columns.session_id, _columns.speaker, _columns.said_at)
    query = select(*wanted, asks).where(_columns.id > after).order_by(_columns.id)
    for number, user_id, agent_id, session_id, speaker, said_at, asked in connection.execute(query):
        yield ConversationPosition(number, Owner(user_id, agent_id), session_id, speaker, said_at, bool(asked))


def load_turn(row: RowMapping) -> StoredTurn:
    return load_row(StoredTurn, {**row, "tags": tuple(row["tags"]), "tools": tuple(row["tools"])})
