"""Approvals and the turns that wait for them. Each approval is answered once (POL-03, I-28)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from sqlalchemy import Connection, Update, and_, bindparam, delete, or_, select, update

from annabelle.core.ids import new_id
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.messages import StoredMessage
from annabelle.store.portable_sql import InsertNew, field_values, read_all, read_first, require_found
from annabelle.store.tables import approvals, parked_turns, threads

ApprovalState = Literal["pending", "approved", "denied", "expired", "cancelled", "used"]
"""`approved` has not been used by a call yet; `cancelled` is a question or an unused approval that was taken back."""

_insert_approval = InsertNew(approvals, ["call_id"])
_own = select(approvals).where(approvals.c.id == bindparam("id"), approvals.c.user_id == bindparam("user_id"))
_by_call = select(approvals).where(approvals.c.call_id == bindparam("call_id"))
_in_order = select(approvals).order_by(approvals.c.created_at, approvals.c.id)
_of_message = _in_order.where(approvals.c.message_id == bindparam("message_id"))
_of_root = _in_order.where(approvals.c.root_id == bindparam("root_id"))
_select_same_call = _of_root.where(
    approvals.c.user_id == bindparam("user_id"),
    approvals.c.agent_id == bindparam("agent_id"),
    approvals.c.digest == bindparam("digest"),
)


@dataclass(frozen=True, slots=True)
class ApprovalBinding:
    """What an approval covers: a chain of turns, a person, an agent and the exact call."""

    root_id: str
    user_id: str
    agent_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class NewApproval:
    bound: ApprovalBinding
    thread_id: str
    message_id: str
    call_id: str
    tool: str
    arguments: JsonObject
    reasons: tuple[str, ...]
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Approval:
    id: str
    user_id: str
    agent_id: str
    thread_id: str
    message_id: str
    root_id: str
    call_id: str
    tool: str
    arguments: JsonObject
    digest: str
    reasons: list[str]
    state: ApprovalState
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    edited: JsonObject | None
    note: str | None
    used_by: str | None
    resumed_by: str | None


@dataclass(frozen=True, slots=True)
class ApprovalVerdict:
    """A person's answer. With edited arguments, the approval covers their digest."""

    state: Literal["approved", "denied"]
    by: str
    note: str = ""
    edited: JsonObject | None = None
    digest: str | None = None


def add_approval(connection: Connection, new: NewApproval) -> Approval:
    """Stores a question. The same call again returns the same question."""
    values = {"id": new_id("apr"), **field_values(new), **field_values(new.bound)}
    del values["bound"]
    _insert_approval.insert(connection, {**values, "state": "pending", "created_at": now()})
    return read_all(connection, Approval, _by_call, {"call_id": new.call_id})[0]


def get_approval(connection: Connection, approval_id: str, user_id: str) -> Approval:
    """Returns one of this person's approvals; NotFound for anyone else's."""
    found = read_first(connection, Approval, _own, {"id": approval_id, "user_id": user_id})
    return require_found(found, f"question {approval_id}", hint="annabelle approvals lists yours.")


def list_message_approvals(connection: Connection, message_id: str) -> list[Approval]:
    return read_all(connection, Approval, _of_message, {"message_id": message_id})


def list_approvals(
    connection: Connection, user_id: str, state: ApprovalState | None = None, limit: int = 100
) -> list[Approval]:
    """Lists a person's approvals, newest first."""
    query = select(approvals).where(approvals.c.user_id == user_id)
    query = query if state is None else query.where(approvals.c.state == state)
    newest = query.order_by(approvals.c.created_at.desc(), approvals.c.id.desc()).limit(limit)
    return read_all(connection, Approval, newest)


def decide_approval(connection: Connection, approval_id: str, verdict: ApprovalVerdict) -> bool:
    """Stores the answer and returns True, if the question is still pending and has not expired."""
    at = now()
    change: JsonObject = {
        "state": verdict.state,
        "decided_at": at,
        "decided_by": verdict.by,
        "note": verdict.note,
        "edited": verdict.edited,
    }
    if verdict.digest is not None:
        change["digest"] = verdict.digest
    waiting = update(approvals).where(
        approvals.c.id == approval_id, approvals.c.state == "pending", approvals.c.expires_at > at
    )
    return _changed_one_row(connection, waiting.values(change))


def use_approval(connection: Connection, yes: ApprovalBinding, call_id: str) -> str | None:
    """Uses up the approval that covers this call and returns its id. A repeated `call_id` gets the same one."""
    alike = read_all(connection, Approval, _select_same_call, field_values(yes))
    for one in alike:
        if one.state == "used" and one.used_by == call_id:
            return one.id
    for one in alike:
        unused = update(approvals).where(approvals.c.id == one.id, approvals.c.state == "approved")
        if one.state == "approved" and _changed_one_row(connection, unused.values(state="used", used_by=call_id)):
            return one.id
    return None


def was_approval_used(connection: Connection, call_id: str, user_id: str) -> bool:
    yes = select(approvals.c.id).where(
        approvals.c.used_by == call_id, approvals.c.state == "used", approvals.c.user_id == user_id
    )
    return connection.execute(yes).first() is not None


def find_denied(connection: Connection, yes: ApprovalBinding, call_id: str) -> Approval | None:
    """Finds an earlier denial of the same call in the same chain of turns."""
    alike = read_all(connection, Approval, _select_same_call, field_values(yes))
    return next((one for one in alike if one.state == "denied" and one.call_id != call_id), None)


def end_approvals(connection: Connection, ids: list[str], state: Literal["expired", "cancelled"]) -> None:
    """Ends pending questions and unused approvals."""
    open_ones = update(approvals).where(approvals.c.id.in_(ids), approvals.c.state.in_(("pending", "approved")))
    connection.execute(open_ones.values(state=state))


def mark_resumed(connection: Connection, message_id: str, by: str) -> None:
    connection.execute(update(approvals).where(approvals.c.message_id == message_id).values(resumed_by=by))


def list_root_approvals(connection: Connection, root_id: str) -> list[Approval]:
    """Lists all approvals of a chain of parked turns, in order."""
    return read_all(connection, Approval, _of_root, {"root_id": root_id})


def mark_used(connection: Connection, approval_id: str, call_id: str) -> None:
    """Records the call an approval was used for, if it did not go through `use_approval`."""
    unused = update(approvals).where(approvals.c.id == approval_id, approvals.c.state == "approved")
    connection.execute(unused.values(state="used", used_by=call_id))


def _changed_one_row(connection: Connection, change: Update) -> bool:
    return connection.execute(change).rowcount == 1


_is_open = or_(
    approvals.c.state == "pending",
    and_(approvals.c.state == "approved", approvals.c.resumed_by.is_(None)),
)


@dataclass(frozen=True, slots=True)
class OpenQuestionFilter:
    """Selects open questions; None matches anything."""

    thread_id: str | None = None
    agent_id: str | None = None
    user_id: str | None = None
    channel: str | None = None
    chat_id: str | None = None
    turn: str | None = None
    """The message that asks, or the first one of its chain of turns."""


def list_waiting_messages(connection: Connection, where: OpenQuestionFilter) -> list[str]:
    """Lists the messages whose turns wait, oldest first."""
    wanted = {
        approvals.c.thread_id: where.thread_id,
        approvals.c.agent_id: where.agent_id,
        approvals.c.user_id: where.user_id,
        threads.c.channel: where.channel,
        threads.c.chat_id: where.chat_id,
    }
    query = (
        select(approvals.c.message_id)
        .join(threads, threads.c.id == approvals.c.thread_id)
        .where(_is_open, *(column == value for column, value in wanted.items() if value is not None))
        .order_by(approvals.c.created_at, approvals.c.id)
    )
    if where.turn is not None:
        query = query.where(or_(approvals.c.message_id == where.turn, approvals.c.root_id == where.turn))
    return list(dict.fromkeys(connection.execute(query).scalars()))


def list_expired_messages(connection: Connection, at: datetime) -> list[str]:
    query = select(approvals.c.message_id).where(approvals.c.state == "pending", approvals.c.expires_at <= at)
    return list(dict.fromkeys(connection.execute(query.order_by(approvals.c.expires_at)).scalars()))


def next_expiry(connection: Connection) -> datetime | None:
    query = select(approvals.c.expires_at).where(approvals.c.state == "pending").order_by(approvals.c.expires_at)
    return cast("datetime | None", connection.execute(query.limit(1)).scalar())


def list_forgotten_messages(connection: Connection, digest: str) -> list[str]:
    """Lists the messages whose open questions concern a forgotten text."""
    query = select(approvals.c.message_id).where(_is_open, approvals.c.digest == digest)
    return list(dict.fromkeys(connection.execute(query).scalars()))


_insert_parked_turn = InsertNew(parked_turns, ["message_id"])


def store_parked_turn(connection: Connection, message: StoredMessage, root_id: str, turn: JsonObject) -> None:
    values: JsonObject = {
        "message_id": message.id,
        "user_id": message.user_id,
        "root_id": root_id,
        "turn": turn,
        "created_at": now(),
    }
    _insert_parked_turn.insert(connection, values)


def get_parked_turn(connection: Connection, message_id: str) -> JsonObject | None:
    query = select(parked_turns.c.turn).where(parked_turns.c.message_id == message_id)
    return cast("JsonObject | None", connection.execute(query).scalar())


def remove_parked_turn(connection: Connection, message_id: str) -> None:
    connection.execute(delete(parked_turns).where(parked_turns.c.message_id == message_id))
