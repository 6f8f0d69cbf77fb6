"""Questions to people: each waits, is answered once, and ends in a state that can be seen (POL-03, I-28)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, RowMapping, Update, bindparam, select, update

from annabelle.core.errors import NotFound
from annabelle.core.ids import new_id
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.statements import InsertNew
from annabelle.store.tables import approvals

ApprovalState = Literal["pending", "approved", "denied", "expired", "cancelled", "used"]
"""`approved` is a yes that no call has used yet; `cancelled` is a question, or an unused yes, that was taken back."""

_insert = InsertNew(approvals, ["call_id"])
_by_id = select(approvals).where(approvals.c.id == bindparam("id"))
_by_call = select(approvals).where(approvals.c.call_id == bindparam("call_id"))
_of_message = (
    select(approvals)
    .where(approvals.c.message_id == bindparam("message_id"))
    .order_by(approvals.c.created_at, approvals.c.id)
)
_of_root = (
    select(approvals)
    .where(approvals.c.root_id == bindparam("root_id"))
    .order_by(approvals.c.created_at, approvals.c.id)
)
_alike = (
    select(approvals)
    .where(
        approvals.c.root_id == bindparam("root_id"),
        approvals.c.user_id == bindparam("user_id"),
        approvals.c.agent_id == bindparam("agent_id"),
        approvals.c.digest == bindparam("digest"),
    )
    .order_by(approvals.c.created_at, approvals.c.id)
)


@dataclass(frozen=True, slots=True)
class Yes:
    """What a yes is bound to: the chain of turns it was asked in, for whom, and the exact call."""

    root_id: str
    user_id: str
    agent_id: str
    digest: str


@dataclass(frozen=True, slots=True)
class NewApproval:
    """A question about to be asked."""

    bound: Yes
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
class Verdict:
    """A person's answer as it is written down; with edited arguments the yes is bound to their digest."""

    state: Literal["approved", "denied"]
    by: str
    note: str = ""
    edited: JsonObject | None = None
    digest: str | None = None


def ask(connection: Connection, new: NewApproval) -> Approval:
    """Write a question down. The same call again finds the same question."""
    values: JsonObject = {
        "id": new_id("apr"),
        "user_id": new.bound.user_id,
        "agent_id": new.bound.agent_id,
        "thread_id": new.thread_id,
        "message_id": new.message_id,
        "root_id": new.bound.root_id,
        "call_id": new.call_id,
        "tool": new.tool,
        "arguments": new.arguments,
        "digest": new.bound.digest,
        "reasons": list(new.reasons),
        "state": "pending",
        "created_at": now(),
        "expires_at": new.expires_at,
    }
    _insert.one(connection, values)
    return _approval(connection.execute(_by_call, {"call_id": new.call_id}).mappings().one())


def get(connection: Connection, approval_id: str, user_id: str) -> Approval:
    """A person's own question; another person's is not found either."""
    row = connection.execute(_by_id, {"id": approval_id}).mappings().first()
    if row is None or row["user_id"] != user_id:
        raise NotFound(f"There is no question {approval_id}.", hint="annabelle approvals lists yours.")
    return _approval(row)


def of_message(connection: Connection, message_id: str) -> list[Approval]:
    """What was asked in the turn of a message, in order."""
    return [_approval(row) for row in connection.execute(_of_message, {"message_id": message_id}).mappings()]


def listing(
    connection: Connection, user_id: str, state: ApprovalState | None = None, limit: int = 100
) -> list[Approval]:
    """A person's questions, newest first."""
    query = select(approvals).where(approvals.c.user_id == user_id)
    query = query if state is None else query.where(approvals.c.state == state)
    rows = connection.execute(query.order_by(approvals.c.created_at.desc(), approvals.c.id.desc()).limit(limit))
    return [_approval(row) for row in rows.mappings()]


def decide(connection: Connection, approval_id: str, verdict: Verdict) -> bool:
    """Write the answer down if the question still waits and its time is not over; whether it was so."""
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
    return _changed(connection, waiting.values(change))


def use(connection: Connection, yes: Yes, call_id: str) -> str | None:
    """The question whose yes covers this call; it is used up by this call id, which may come again after a crash."""
    alike = [_approval(row) for row in connection.execute(_alike, _bound(yes)).mappings()]
    for one in alike:
        if one.state == "used" and one.used_by == call_id:
            return one.id
    for one in alike:
        unused = update(approvals).where(approvals.c.id == one.id, approvals.c.state == "approved")
        if one.state == "approved" and _changed(connection, unused.values(state="used", used_by=call_id)):
            return one.id
    return None


def used_for(connection: Connection, call_id: str, user_id: str) -> bool:
    """Whether a call was made with this person's yes."""
    yes = select(approvals.c.id).where(
        approvals.c.used_by == call_id, approvals.c.state == "used", approvals.c.user_id == user_id
    )
    return connection.execute(yes).first() is not None


def denied(connection: Connection, yes: Yes, call_id: str) -> Approval | None:
    """An earlier no to the same call in the same chain of turns."""
    alike = (_approval(row) for row in connection.execute(_alike, _bound(yes)).mappings())
    return next((one for one in alike if one.state == "denied" and one.call_id != call_id), None)


def end(connection: Connection, ids: list[str], state: Literal["expired", "cancelled"]) -> None:
    """Take back questions, and yeses that were not used."""
    open_ones = update(approvals).where(approvals.c.id.in_(ids), approvals.c.state.in_(("pending", "approved")))
    connection.execute(open_ones.values(state=state))


def resumed(connection: Connection, message_id: str, by: str) -> None:
    """Note which message carries on the turn that asked."""
    connection.execute(update(approvals).where(approvals.c.message_id == message_id).values(resumed_by=by))


def of_root(connection: Connection, root_id: str) -> list[Approval]:
    """Everything that was asked in a chain of parked turns, in order."""
    return [_approval(row) for row in connection.execute(_of_root, {"root_id": root_id}).mappings()]


def spent(connection: Connection, approval_id: str, call_id: str) -> None:
    """Note the call that was made with a yes it did not have to show."""
    unused = update(approvals).where(approvals.c.id == approval_id, approvals.c.state == "approved")
    connection.execute(unused.values(state="used", used_by=call_id))


def _bound(yes: Yes) -> JsonObject:
    return {"root_id": yes.root_id, "user_id": yes.user_id, "agent_id": yes.agent_id, "digest": yes.digest}


def _changed(connection: Connection, change: Update) -> bool:
    return connection.execute(change).rowcount == 1


def _approval(row: RowMapping) -> Approval:
    return Approval(**{str(key): value for key, value in row.items()})
