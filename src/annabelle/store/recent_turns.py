"""The last turns of a thread: what the person said in them, and what foreign content the agent has seen (TRU-03)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from annabelle.core.messages import now
from annabelle.store.statements import InsertNew
from annabelle.store.tables import messages, tool_calls

TURNS = 10

_this = messages.alias("this")
_recent = (
    select(messages.c.id, messages.c.content, messages.c.position)
    .join(_this, _this.c.id == bindparam("message_id"))
    .where(
        messages.c.thread_id == _this.c.thread_id,
        messages.c.position <= _this.c.position,
        messages.c.kind == "inbound",
    )
    .order_by(messages.c.position.desc())
    .limit(bindparam("turns"))
)
_ids = _recent.subquery()
_untrusted = (
    select(tool_calls.c.tool)
    .distinct()
    .where(tool_calls.c.message_id.in_(select(_ids.c.id)), tool_calls.c.trust == "untrusted")
    .order_by(tool_calls.c.tool)
)
_insert = InsertNew(tool_calls, ["call_id"])


@dataclass(frozen=True, slots=True)
class Seen:
    """A result that was read outside the journal, and on whose behalf."""

    tool: str
    user_id: str
    agent_id: str | None
    message_id: str


def untrusted_tools(connection: Connection, message_id: str, turns: int = TURNS) -> list[str]:
    """The tools whose untrusted results were seen in the turn of this message or the ones before it."""
    rows = connection.execute(_untrusted, {"message_id": message_id, "turns": turns})
    return [str(row[0]) for row in rows]


def words(connection: Connection, message_id: str, turns: int = TURNS) -> list[str]:
    """What the person said, this message first and the ones before it after."""
    rows = connection.execute(_recent, {"message_id": message_id, "turns": turns})
    return [str(row.content) for row in rows]


def note_untrusted(connection: Connection, seen: Seen) -> None:
    """Remember that foreign content was seen by a call that has no id of its own; once per turn and tool."""
    at = now()
    values: dict[str, object] = {
        "call_id": f"{seen.message_id}:seen:{seen.tool}",
        "state": "finished",
        "tool": seen.tool,
        "arguments_hash": "",
        "agent_id": seen.agent_id,
        "user_id": seen.user_id,
        "message_id": seen.message_id,
        "started_at": at,
        "finished_at": at,
        "trust": "untrusted",
    }
    _insert.one(connection, values)
