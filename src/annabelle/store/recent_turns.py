"""The turns of a thread: what the person said in them, and what foreign content the agent has seen (TRU-03).

Foreign content taints for as long as it is there: what was read may be in the agent's mind, in a summary or in its
archive, however many turns ago it came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection, RowMapping, bindparam, case, select

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.statements import InsertNew
from annabelle.store.tables import messages, tool_calls

TURNS = 10
"""Turns whose words back what an agent writes down."""
WARNED_TURNS = 50
"""Turns whose warnings make policy more careful: more than anybody waits for, but not all of a chat of years."""
_EARLIER = 2
_RESULTS = 80
_RESULT_CHARS = 1_000_000

_this = messages.alias("this")
_before = (
    select(messages.c.id, messages.c.content, messages.c.position, messages.c.source, messages.c.metadata)
    .join(_this, _this.c.id == bindparam("message_id"))
    .where(
        messages.c.thread_id == _this.c.thread_id,
        messages.c.position <= _this.c.position,
        messages.c.kind == "inbound",
    )
    .order_by(messages.c.position.desc())
)
_recent = _before.limit(bindparam("turns"))
_said = _before.where(messages.c.source == "user").limit(bindparam("turns"))
_seen_there = (
    tool_calls.join(messages, messages.c.id == tool_calls.c.message_id)
    .join(_this, _this.c.id == bindparam("message_id"))
)  # fmt: skip
_in_the_thread = (messages.c.thread_id == _this.c.thread_id, messages.c.position <= _this.c.position)
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
# Calls of this turn one by one, for they are counted; of those before it, one of each sort.
_left_out = select(
    _older.c.tool,
    _older.c.trust,
    _older.c.labels,
    _in_this_turn.label("this_turn"),
    case((_in_this_turn, _older.c.call_id), else_="").label("call"),
).distinct()
_warned = select(tool_calls.c.labels).where(
    tool_calls.c.message_id.in_(bindparam("messages", expanding=True)), tool_calls.c.labels.is_not(None)
)
_insert = InsertNew(tool_calls, ["call_id"])
_BESIDE_CONTENT = frozenset({"source", "is_error"})


@dataclass(frozen=True, slots=True)
class Seen:
    """A result that was read outside the journal, and on whose behalf."""

    tool: str
    user_id: str
    agent_id: str | None
    message_id: str


@dataclass(frozen=True, slots=True)
class KeptResult:
    """A result as the journal has it. `this_turn`: it came back since the person's last message. `cut`: there is more
    in it than is looked at, so nothing can be said about what does not stand in it."""

    tool: str
    result: JsonObject
    trusted: bool
    labels: tuple[str, ...]
    this_turn: bool
    cut: bool = False


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What is known of a turn: the person's words, those before it, and what was seen in the whole thread."""

    words: str
    earlier: tuple[str, ...]
    untrusted: tuple[str, ...]
    warnings: frozenset[str]
    results: tuple[KeptResult, ...]


def untrusted_tools(connection: Connection, message_id: str) -> list[str]:
    """The tools whose untrusted results were seen in the thread, up to the turn of this message."""
    rows = connection.execute(_untrusted, {"message_id": message_id})
    return [str(row[0]) for row in rows]


def is_tainted(connection: Connection, message_id: str) -> bool:
    """Whether there are any."""
    return connection.execute(_any_untrusted, {"message_id": message_id}).first() is not None


def words(connection: Connection, message_id: str, turns: int = TURNS) -> list[str]:
    """What the person said, this message first and the ones before it after. Our own notes are not among it."""
    return [str(row["content"]) for row in _heeded(connection, message_id, turns)]


def record(connection: Connection, message_id: str) -> TurnRecord:
    """All that policy needs to know of a turn, also when it is one that was parked and goes on."""
    recent = connection.execute(_recent, {"message_id": message_id, "turns": WARNED_TURNS}).mappings().all()
    root = next((_root(row) for row in recent if row["id"] == message_id), message_id)
    said = _heeded(connection, root, 1 + _EARLIER)
    own = bool(said) and said[0]["id"] == root  # a turn that no person began is nobody's order
    # Asked for by itself: a flood of other results must not push a warning out of those that are looked at.
    marked = connection.execute(_warned, {"messages": [row["id"] for row in recent]}).scalars()
    warnings = [*marked, *(row["metadata"].get("labels") for row in recent)]
    return TurnRecord(
        words=str(said[0]["content"]) if own else "",
        earlier=tuple(str(row["content"]) for row in said[1:]) if own else (),
        untrusted=tuple(untrusted_tools(connection, message_id)),
        warnings=frozenset(label for labels in warnings for label in _labels(labels)),
        results=_kept(connection, message_id, recent, root),
    )


def _heeded(connection: Connection, message_id: str, turns: int) -> list[RowMapping]:
    """The person's messages without those the guardian blocked: nothing was done about them, and they back nothing."""
    rows = connection.execute(_said, {"message_id": message_id, "turns": turns}).mappings()
    return [row for row in rows if row["metadata"].get("risk") != "high"]


def _kept(connection: Connection, message_id: str, recent: Sequence[RowMapping], root: str) -> tuple[KeptResult, ...]:
    """All results, the newest first: with their content while there is room for it, then with what is known of it."""
    turn = {message_id, root} | {str(row["id"]) for row in recent if _root(row) == root}
    kept: list[KeptResult] = []
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


def _result(row: RowMapping, content: JsonObject, *, this_turn: bool, cut: bool) -> KeptResult:
    return KeptResult(row["tool"], content, row["trust"] == "trusted", _labels(row["labels"]), this_turn, cut)


def _root(row: RowMapping) -> str:
    """The person's message behind a message: a continuation names it, and only the hub writes continuations."""
    return str(row["metadata"]["root"]) if row["source"] == "decision" else str(row["id"])


def _labels(value: object) -> tuple[str, ...]:
    return tuple(str(label) for label in cast("list[object]", value)) if isinstance(value, list) else ()


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
