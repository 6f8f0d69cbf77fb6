"""People's rules about tool calls, active until revoked and independent of conversations (I-14)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import Connection, bindparam, insert, or_, select, update

from annabelle.core.errors import Conflict
from annabelle.core.ids import new_id
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.portable_sql import field_values, read_all, read_first, require_found
from annabelle.store.tables import rules

RuleKind = Literal["allow", "ask", "never"]
RuleState = Literal["proposed", "stated", "active", "revoked"]
"""`stated` comes from the person's own words and applies at once; `proposed` comes from an agent and applies once
confirmed. Both wait for the person."""

_HOLDING = ("stated", "active")
_WAITING = ("proposed", "stated")

_own = select(rules).where(rules.c.id == bindparam("id"), rules.c.user_id == bindparam("user_id"))
_active = (
    select(rules)
    .where(
        rules.c.user_id == bindparam("user_id"),
        or_(rules.c.agent_id.is_(None), rules.c.agent_id == bindparam("agent_id")),
        rules.c.state.in_(_HOLDING),
    )
    .order_by(rules.c.created_at, rules.c.id)
)
_same = select(rules).where(
    rules.c.user_id == bindparam("user_id"), rules.c.kind == bindparam("kind"), rules.c.state != "revoked"
)


@dataclass(frozen=True, slots=True)
class NewRule:
    """A rule to store. `match` says which calls it covers, in the format policy reads."""

    user_id: str
    kind: RuleKind
    words: str
    match: JsonObject
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredRule:
    id: str
    user_id: str
    agent_id: str | None
    kind: RuleKind
    words: str
    match: JsonObject
    state: RuleState
    created_at: datetime
    confirmed_at: datetime | None
    revoked_at: datetime | None


def add_rule(connection: Connection, new: NewRule, state: Literal["proposed", "stated", "active"]) -> StoredRule:
    """Stores a rule. An equal one that was not revoked is kept, and may only become stronger."""
    known = _find_same_rule(connection, new)
    if known is not None:
        return _strengthen(connection, known, state)
    rule_id, at = new_id("rule"), now()
    times = {"created_at": at, "confirmed_at": at if state == "active" else None}
    connection.execute(insert(rules), {"id": rule_id, **field_values(new), "state": state, **times})
    return get_rule(connection, rule_id, new.user_id)


def add_allowance(
    connection: Connection, *, user_id: str, agent_id: str | None, words: str, match: JsonObject
) -> StoredRule:
    """Adds a narrow "always allow" that the person chose when asked: active at once (POL-05)."""
    return add_rule(connection, NewRule(user_id, "allow", words, match, agent_id), "active")


def confirm_rule(connection: Connection, rule_id: str, user_id: str) -> StoredRule:
    """Confirms a rule that waits. Idempotent; a revoked rule stays revoked."""
    rule = get_rule(connection, rule_id, user_id)
    if rule.state == "revoked":
        raise Conflict(f"The rule {rule_id} was revoked.", hint="State it again: annabelle rules add")
    waiting = update(rules).where(rules.c.id == rule_id, rules.c.state.in_(_WAITING))
    connection.execute(waiting.values(state="active", confirmed_at=now()))
    return get_rule(connection, rule_id, user_id)


def revoke_rule(connection: Connection, rule_id: str, user_id: str) -> StoredRule:
    """Revokes a rule, even one only proposed. It stays in the list."""
    get_rule(connection, rule_id, user_id)
    connection.execute(
        update(rules).where(rules.c.id == rule_id, rules.c.state != "revoked").values(state="revoked", revoked_at=now())
    )
    return get_rule(connection, rule_id, user_id)


def get_rule(connection: Connection, rule_id: str, user_id: str) -> StoredRule:
    """Returns a rule of this person; NotFound for anyone else's."""
    found = read_first(connection, StoredRule, _own, {"id": rule_id, "user_id": user_id})
    return require_found(found, f"rule {rule_id}", hint="annabelle rules lists yours.")


def list_rules(connection: Connection, user_id: str, *, revoked: bool = False) -> list[StoredRule]:
    """Lists a person's rules, oldest first, optionally with revoked ones."""
    query = select(rules).where(rules.c.user_id == user_id).order_by(rules.c.created_at, rules.c.id)
    return read_all(connection, StoredRule, query if revoked else query.where(rules.c.state != "revoked"))


def list_active_rules(connection: Connection, user_id: str, agent_id: str | None) -> list[StoredRule]:
    """Lists the rules in force for this agent and person: the agent's own and those for every agent."""
    return read_all(connection, StoredRule, _active, {"user_id": user_id, "agent_id": agent_id})


def _find_same_rule(connection: Connection, new: NewRule) -> StoredRule | None:
    known = read_all(connection, StoredRule, _same, {"user_id": new.user_id, "kind": new.kind})
    return next((rule for rule in known if rule.agent_id == new.agent_id and rule.match == new.match), None)


def _strengthen(connection: Connection, known: StoredRule, state: RuleState) -> StoredRule:
    if state == "active":
        return confirm_rule(connection, known.id, known.user_id)
    if state == "stated" and known.state == "proposed":
        connection.execute(update(rules).where(rules.c.id == known.id).values(state="stated"))
        return get_rule(connection, known.id, known.user_id)
    return known
