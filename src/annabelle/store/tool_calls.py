"""Tool calls: written down as started before dispatch, so that none happens twice unseen (DUR-03)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from sqlalchemy import Connection, bindparam, select, update

from annabelle.core.errors import Conflict, NotFound
from annabelle.core.memory import Trust
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Label
from annabelle.store.statements import InsertNew
from annabelle.store.tables import tool_calls

_insert = InsertNew(tool_calls, ["call_id"])
_get = select(tool_calls).where(tool_calls.c.call_id == bindparam("call_id"))
_finish = (
    update(tool_calls)
    .where(tool_calls.c.call_id == bindparam("call"), tool_calls.c.state == "started")
    .values(
        state=bindparam("new_state"),
        result=bindparam("new_result"),
        finished_at=bindparam("at"),
        trust=bindparam("new_trust"),
        labels=bindparam("new_labels"),
    )
)
# What was only looked at on the agent's behalf has no arguments, and was not used by it.
_used = (
    select(tool_calls.c.tool)
    .where(tool_calls.c.message_id == bindparam("message_id"), tool_calls.c.arguments_hash != "")
    .order_by(tool_calls.c.started_at, tool_calls.c.call_id)
)


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known of a call: new, finished with this result, or started once without an end."""

    state: Literal["fresh", "finished", "in_doubt"]
    result: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call about to be made, and on whose behalf."""

    call_id: str
    tool: str
    arguments_hash: str
    user_id: str
    agent_id: str | None = None
    message_id: str | None = None
    trace_id: str | None = None


def begin(connection: Connection, call: NewCall) -> Begun:
    """Write the call down as started. Only `fresh` may be dispatched without a thought."""
    values: JsonObject = {
        "call_id": call.call_id,
        "state": "started",
        "tool": call.tool,
        "arguments_hash": call.arguments_hash,
        "agent_id": call.agent_id,
        "user_id": call.user_id,
        "message_id": call.message_id,
        "trace_id": call.trace_id,
        "started_at": now(),
    }
    if _insert.one(connection, values) is not None:
        return Begun("fresh")
    row = connection.execute(_get, {"call_id": call.call_id}).mappings().one()
    if (row["tool"], row["arguments_hash"], row["user_id"]) != (call.tool, call.arguments_hash, call.user_id):
        raise Conflict(f"The call {call.call_id} was already made with another tool or other arguments.")
    if row["state"] == "started":
        return Begun("in_doubt")
    return Begun("finished", cast("JsonObject | None", row["result"]))


def finish(
    connection: Connection, call_id: str, result: JsonObject, trust: Trust = "untrusted", labels: Sequence[Label] = ()
) -> None:
    """Keep the result, how far it may be trusted and what else is known of it; the first one stays."""
    _end(connection, call_id, "finished", result, (trust, labels))


def mark_unknown(connection: Connection, call_id: str, result: JsonObject) -> None:
    """Keep that nobody knows whether the call happened, with the result that says so: our own words."""
    _end(connection, call_id, "unknown", result, ("trusted", ()))


def _end(
    connection: Connection, call_id: str, state: str, result: JsonObject, known: tuple[Trust, Sequence[Label]]
) -> None:
    trust, labels = known
    change: JsonObject = {
        "call": call_id,
        "new_state": state,
        "new_result": result,
        "new_trust": trust,
        "new_labels": list(labels) or None,
        "at": now(),
    }
    if connection.execute(_finish, change).rowcount == 1:
        return
    if connection.execute(_get, {"call_id": call_id}).first() is None:
        raise NotFound(f"There is no call {call_id}.")


def unknown_of(connection: Connection, message_id: str) -> list[str]:
    """The calls of a message whose outcome nobody knows."""
    rows = connection.execute(
        select(tool_calls.c.call_id)
        .where(tool_calls.c.message_id == message_id, tool_calls.c.state == "unknown")
        .order_by(tool_calls.c.started_at, tool_calls.c.call_id)
    )
    return [str(row[0]) for row in rows]


def used_for(connection: Connection, message_id: str) -> list[str]:
    """The tools that were called for a message, each once, in the order of their first call."""
    rows = connection.execute(_used, {"message_id": message_id})
    return list(dict.fromkeys(str(row[0]) for row in rows))


def known(connection: Connection, call_id: str) -> bool:
    """Whether a call of this id was begun."""
    return connection.execute(_get, {"call_id": call_id}).first() is not None


def made(connection: Connection, message_id: str, arguments_hash: str) -> str | None:
    """The id of a call of exactly this tool and these arguments in the turn of a message, if there was one."""
    query = select(tool_calls.c.call_id).where(
        tool_calls.c.message_id == message_id, tool_calls.c.arguments_hash == arguments_hash
    )
    return connection.execute(query.order_by(tool_calls.c.started_at).limit(1)).scalar()
