"""Tool calls, stored before dispatch so that none is repeated (DUR-03), and the lasting taint of threads (TRU-03)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from sqlalchemy import Connection, RowMapping, bindparam, case, select, update

from annabelle.core.errors import Conflict
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Label, Trust
from annabelle.store.portable_sql import InsertNew, field_values, read_all, require_found
from annabelle.store.tables import messages, tool_calls

_insert = InsertNew(tool_calls, ["call_id"])
_select_call = select(tool_calls).where(tool_calls.c.call_id == bindparam("call_id"))
_update_call = (
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
# Rows of `note_untrusted` have no arguments, and were not calls of the agent.
_select_tools_used = (
    select(tool_calls.c.tool)
    .where(tool_calls.c.message_id == bindparam("message_id"), tool_calls.c.arguments_hash != "")
    .order_by(tool_calls.c.started_at, tool_calls.c.call_id)
)


@dataclass(frozen=True, slots=True)
class StartedToolCall:
    """State of a call: new, finished with a result, or started without a known end."""

    state: Literal["fresh", "finished", "in_doubt"]
    result: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class NewToolCall:
    call_id: str
    tool: str
    arguments_hash: str
    user_id: str
    agent_id: str | None = None
    message_id: str | None = None
    trace_id: str | None = None


def begin_call(connection: Connection, call: NewToolCall) -> StartedToolCall:
    """Stores the call as started. Only a `fresh` one may be dispatched without checks."""
    if _insert.insert(connection, {**field_values(call), "state": "started", "started_at": now()}) is not None:
        return StartedToolCall("fresh")
    row = connection.execute(_select_call, {"call_id": call.call_id}).mappings().one()
    if (row["tool"], row["arguments_hash"], row["user_id"]) != (call.tool, call.arguments_hash, call.user_id):
        raise Conflict(f"The call {call.call_id} was already made with another tool or other arguments.")
    if row["state"] == "started":
        return StartedToolCall("in_doubt")
    return StartedToolCall("finished", cast("JsonObject | None", row["result"]))


def finish_call(
    connection: Connection, call_id: str, result: JsonObject, trust: Trust = "untrusted", labels: Sequence[Label] = ()
) -> None:
    """Stores the first result with its trust and labels; later ones are ignored."""
    _end_call(connection, call_id, "finished", result, (trust, labels))


def mark_call_unknown(connection: Connection, call_id: str, result: JsonObject) -> None:
    """Records that the call may or may not have happened, with a result that says so."""
    _end_call(connection, call_id, "unknown", result, ("trusted", ()))


def _end_call(
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
    if connection.execute(_update_call, change).rowcount != 1:
        require_found(connection.execute(_select_call, {"call_id": call_id}).first(), f"call {call_id}")


def list_unknown_calls(connection: Connection, message_id: str) -> list[str]:
    unknown = select(tool_calls.c.call_id).where(tool_calls.c.message_id == message_id, tool_calls.c.state == "unknown")
    return list(connection.execute(unknown.order_by(tool_calls.c.started_at, tool_calls.c.call_id)).scalars())


def list_tools_used(connection: Connection, message_id: str) -> list[str]:
    """Lists the tools called for a message, in the order of their first call."""
    return list(dict.fromkeys(connection.execute(_select_tools_used, {"message_id": message_id}).scalars()))


@dataclass(frozen=True, slots=True)
class CallLine:
    """One call, as a list of the latest ones shows it."""

    tool: str
    state: str
    started_at: datetime


def list_latest_calls(connection: Connection, tools: Sequence[str], limit: int) -> list[CallLine]:
    """Lists the latest calls of these tools, newest first."""
    columns = select(tool_calls.c.tool, tool_calls.c.state, tool_calls.c.started_at)
    latest = columns.where(tool_calls.c.tool.in_(tools)).order_by(tool_calls.c.started_at.desc()).limit(limit)
    return read_all(connection, CallLine, latest)


def is_known_call(connection: Connection, call_id: str) -> bool:
    return connection.execute(_select_call, {"call_id": call_id}).first() is not None


def find_same_call(connection: Connection, message_id: str, arguments_hash: str) -> str | None:
    """Finds a call with this tool and these arguments in the turn of a message."""
    query = select(tool_calls.c.call_id).where(
        tool_calls.c.message_id == message_id, tool_calls.c.arguments_hash == arguments_hash
    )
    return connection.execute(query.order_by(tool_calls.c.started_at).limit(1)).scalar()


QUOTED_TURNS = 10
"""Turns whose words can justify what an agent stores."""
WARNED_TURNS = 50
"""Turns whose warnings make policy stricter: many, but not years of chat."""
_EARLIER_TURNS = 2
_RESULTS = 80
_RESULT_CHARS = 1_000_000

_this_message = messages.alias("this")
_select_inbound = (
    select(messages.c.id, messages.c.content, messages.c.position, messages.c.source, messages.c.metadata)
    .join(_this_message, _this_message.c.id == bindparam("message_id"))
    .where(
        messages.c.thread_id == _this_message.c.thread_id,
        messages.c.position <= _this_message.c.position,
        messages.c.kind == "inbound",
    )
    .order_by(messages.c.position.desc())
)
_select_recent = _select_inbound.limit(bindparam("turns"))
# What a skill was confirmed to do is the person's words in the thread of its run, which holds nothing else (POL-09).
_select_said = _select_inbound.where(messages.c.source.in_(("user", "skill"))).limit(bindparam("turns"))
_seen_there = (
    tool_calls.join(messages, messages.c.id == tool_calls.c.message_id)
    .join(_this_message, _this_message.c.id == bindparam("message_id"))
)  # fmt: skip
_in_the_thread = (messages.c.thread_id == _this_message.c.thread_id, messages.c.position <= _this_message.c.position)
_untrusted = (
    select(tool_calls.c.tool)
    .distinct()
    .select_from(_seen_there)
    .where(*_in_the_thread, tool_calls.c.trust == "untrusted")
    .order_by(tool_calls.c.tool)
)
_any_untrusted = (
    select(tool_calls.c.call_id).select_from(_seen_there).where(*_in_the_thread, tool_calls.c.trust == "untrusted")
).limit(1)
_finished = (
    select(tool_calls)
    .select_from(_seen_there)
    .where(*_in_the_thread, tool_calls.c.state == "finished", tool_calls.c.result.is_not(None))
    .order_by(messages.c.position.desc(), tool_calls.c.finished_at.desc())
)
_results = _finished.limit(_RESULTS)
_older = _finished.offset(_RESULTS).subquery()
_in_this_turn = _older.c.message_id.in_(bindparam("turn", expanding=True))
# Calls of this turn one by one, because they are counted; of earlier ones, one of each sort.
_left_out = select(
    _older.c.tool,
    _older.c.trust,
    _older.c.labels,
    _in_this_turn.label("this_turn"),
    case((_in_this_turn, _older.c.call_id), else_="").label("call"),
).distinct()
_select_labels = select(tool_calls.c.labels).where(
    tool_calls.c.message_id.in_(bindparam("messages", expanding=True)), tool_calls.c.labels.is_not(None)
)
_BESIDE_CONTENT = frozenset({"source", "is_error"})


@dataclass(frozen=True, slots=True)
class SeenToolResult:
    """A result seen by a call without an id, and on whose behalf."""

    tool: str
    user_id: str
    agent_id: str | None
    message_id: str


@dataclass(frozen=True, slots=True)
class StoredToolResult:
    """A stored result. `this_turn`: it is newer than the person's last message. `cut`: its content is incomplete, so
    nothing follows from what is missing in it."""

    tool: str
    result: JsonObject
    trusted: bool
    labels: tuple[str, ...]
    this_turn: bool
    cut: bool = False


@dataclass(frozen=True, slots=True)
class TurnProvenance:
    """What is known about a turn: the person's words, earlier ones, and what was seen in the thread."""

    words: str
    earlier: tuple[str, ...]
    untrusted: tuple[str, ...]
    warnings: frozenset[str]
    results: tuple[StoredToolResult, ...]


def list_untrusted_tools(connection: Connection, message_id: str) -> list[str]:
    """Lists tools whose untrusted results were seen in the thread, up to the turn of this message."""
    return list(connection.execute(_untrusted, {"message_id": message_id}).scalars())


def is_tainted(connection: Connection, message_id: str) -> bool:
    """Whether untrusted results were seen in the thread."""
    return connection.execute(_any_untrusted, {"message_id": message_id}).first() is not None


def list_person_words(connection: Connection, message_id: str, turns: int = QUOTED_TURNS) -> list[str]:
    """Returns what the person said, newest first, starting with this message. Leaves out our own notes."""
    return [str(row["content"]) for row in _unblocked_messages(connection, message_id, turns)]


def read_turn_provenance(connection: Connection, message_id: str) -> TurnProvenance:
    """Returns all that policy needs to know about a turn, also about a resumed one."""
    recent = connection.execute(_select_recent, {"message_id": message_id, "turns": WARNED_TURNS}).mappings().all()
    root = next((_root_id(row) for row in recent if row["id"] == message_id), message_id)
    said = _unblocked_messages(connection, root, 1 + _EARLIER_TURNS)
    own = bool(said) and said[0]["id"] == root  # False if no person began the turn, so no words justify it
    # Queried separately: many other results must not push out a warning.
    marked = connection.execute(_select_labels, {"messages": [row["id"] for row in recent]}).scalars()
    warnings = [*marked, *(row["metadata"].get("labels") for row in recent)]
    return TurnProvenance(
        words=str(said[0]["content"]) if own else "",
        earlier=tuple(str(row["content"]) for row in said[1:]) if own else (),
        untrusted=tuple(list_untrusted_tools(connection, message_id)),
        warnings=frozenset(label for labels in warnings for label in _parse_labels(labels)),
        results=_read_results(connection, message_id, recent, root),
    )


def _unblocked_messages(connection: Connection, message_id: str, turns: int) -> list[RowMapping]:
    """Returns the person's messages without blocked ones, which justify nothing."""
    rows = connection.execute(_select_said, {"message_id": message_id, "turns": turns}).mappings()
    return [row for row in rows if row["metadata"].get("risk") != "high"]


def _read_results(
    connection: Connection, message_id: str, recent: Sequence[RowMapping], root: str
) -> tuple[StoredToolResult, ...]:
    """Returns all results, newest first: with content up to a limit, then only with trust and labels."""
    turn = {message_id, root} | {str(row["id"]) for row in recent if _root_id(row) == root}
    kept: list[StoredToolResult] = []
    left = _RESULT_CHARS
    for row in connection.execute(_results, {"message_id": message_id}).mappings():
        result = cast("JsonObject", row["result"])
        size = len(str(result))
        cut = size > left
        left -= 0 if cut else size
        content = {key: value for key, value in result.items() if key in _BESIDE_CONTENT} if cut else result
        kept.append(_result(row, content, this_turn=row["message_id"] in turn, cut=cut))
    for row in connection.execute(_left_out, {"message_id": message_id, "turn": sorted(turn)}).mappings():
        kept.append(_result(row, {}, this_turn=bool(row["this_turn"]), cut=True))
    return tuple(kept)


def _result(row: RowMapping, content: JsonObject, *, this_turn: bool, cut: bool) -> StoredToolResult:
    return StoredToolResult(
        row["tool"], content, row["trust"] == "trusted", _parse_labels(row["labels"]), this_turn, cut
    )


def _root_id(row: RowMapping) -> str:
    """Id of the person's message behind a message; only the hub writes continuations, which name it."""
    return str(row["metadata"]["root"]) if row["source"] == "decision" else str(row["id"])


def _parse_labels(value: object) -> tuple[str, ...]:
    return tuple(str(label) for label in cast("list[object]", value)) if isinstance(value, list) else ()


def note_untrusted(connection: Connection, seen: SeenToolResult, result: JsonObject | None = None) -> None:
    """Records foreign content that no call with an id brought; once per turn and tool."""
    at = now()
    values: dict[str, object] = {
        **field_values(seen),
        "call_id": f"{seen.message_id}:seen:{seen.tool}",
        "state": "finished",
        "arguments_hash": "",
        "started_at": at,
        "finished_at": at,
        "trust": "untrusted",
        "result": result,
    }
    _insert.insert(connection, values)
