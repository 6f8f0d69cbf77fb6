"""What a person does with their rules: state, confirm, see and revoke them. Agents can only propose (TRU-05, I-13)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from annabelle.core.errors import InvalidArguments
from annabelle.core.events import StoredEvent, TurnEvent
from annabelle.core.messages import InboundMessage
from annabelle.core.ports import Audit
from annabelle.core.tools import JsonObject
from annabelle.core.visible import visible
from annabelle.hub.events.log import EventLog, Written
from annabelle.hub.rules.missed import Missed, missed_in
from annabelle.policy.rules.compile import Compiled, NotUnderstood, compile_rule, stated_in
from annabelle.store import events, rules
from annabelle.store.database import Database
from annabelle.store.rules import NewRule, StoredRule

_EXAMPLES = 'Say it like "always ask before deleting mail" or "never send anything to Bob".'


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was said: the conversation and its message."""

    user_id: str
    thread_id: str
    message_id: str


class Rules:
    """The one door to the rules of this home. Every change is noted, without the words."""

    def __init__(self, database: Database, log: EventLog, audit: Audit) -> None:
        self._database, self._log, self._audit = database, log, audit

    async def listing(self, user_id: str, *, revoked: bool = False) -> list[StoredRule]:
        return await self._database.read(lambda conn: rules.listing(conn, user_id, revoked=revoked))

    async def add(self, user_id: str, words: str, agent_id: str | None = None) -> StoredRule:
        """A rule the person states as one: it needs no second yes. InvalidArguments says what is not understood."""
        new = _new(understood(words), user_id, agent_id)
        rule = await self._database.write(lambda conn: rules.add(conn, new, "active"))
        self._note("added", rule, user_id)
        return rule

    async def confirm(self, rule_id: str, user_id: str) -> StoredRule:
        rule = await self._database.write(lambda conn: rules.confirm(conn, rule_id, user_id))
        self._note("confirmed", rule, user_id)
        return rule

    async def revoke(self, rule_id: str, user_id: str) -> StoredRule:
        rule = await self._database.write(lambda conn: rules.revoke(conn, rule_id, user_id))
        self._note("revoked", rule, user_id)
        return rule

    async def propose(self, words: str, place: Place) -> StoredRule:
        """An agent's idea: it holds nothing until the person has confirmed it, and the person is told of it."""
        compiled = understood(words)

        def write(conn: Connection) -> Written[StoredRule]:
            rule = rules.add(conn, _new(compiled, place.user_id, None), "proposed")
            return Written(rule, place.user_id, _tell(conn, place, rule, compiled))

        rule = await self._log.transact(write)
        self._note("proposed", rule, place.user_id)
        return rule

    def notice(self, conn: Connection, message: InboundMessage, place: Place) -> list[StoredEvent]:
        """The rules a person states in a message: they hold from this moment, whatever becomes of the conversation.

        No model reads them here. One that was meant otherwise is taken back with a word, and restricts until then. One
        that is not understood is not held, and the person is told.
        """
        told: list[StoredEvent] = []
        for compiled in stated_in(message.text):
            rule = rules.add(conn, _new(compiled, place.user_id, None), "stated")
            if rule.state == "stated":
                self._note("stated", rule, place.user_id)
                told += _tell(conn, place, rule, compiled)
        for number, missed in enumerate(missed_in(message.text)):
            told += _tell_missed(conn, place, number, missed)
        return told

    def _note(self, what: str, rule: StoredRule, user_id: str) -> None:
        facts: JsonObject = {"what": what, "rule_id": rule.id, "kind": rule.kind, "user_id": user_id}
        self._audit.note("rule", facts)


def understood(words: str) -> Compiled:
    try:
        return compile_rule(words)
    except NotUnderstood as trouble:
        raise InvalidArguments(f"The rule was not understood. {trouble}", hint=_EXAMPLES, field="words") from trouble


def reading(rule: StoredRule) -> str:
    """The rule in plain words, as it is held; an allowance reads as it was made."""
    try:
        return rule.words if rule.kind == "allow" else compile_rule(rule.words).reading
    except NotUnderstood:
        return "Asked about, because its words were forgotten."


def _new(compiled: Compiled, user_id: str, agent_id: str | None) -> NewRule:
    return NewRule(user_id, compiled.kind, compiled.words, compiled.match.model_dump(mode="json"), agent_id)


def _tell(conn: Connection, place: Place, rule: StoredRule, compiled: Compiled) -> list[StoredEvent]:
    since = "It holds once you say so" if rule.state == "proposed" else "It holds from now on; say whether you meant it"
    choice = f"annabelle rules confirm {rule.id}, or: annabelle rules revoke {rule.id}"
    text = f"A rule: “{visible(rule.words)}” {compiled.reading} {since}: {choice}"
    data: JsonObject = {"text": text, "rule_id": rule.id, "state": rule.state}
    event = TurnEvent(message_id=place.message_id, key=f"rule:{rule.id}", type="notice", data=data)
    return events.append(conn, place.thread_id, [event])


def _tell_missed(conn: Connection, place: Place, number: int, missed: Missed) -> list[StoredEvent]:
    why = missed.why.rstrip(".")
    text = (
        f"Not taken as a rule, so nothing of it holds: “{visible(missed.words)}” ({visible(why)}); write it like "
        'annabelle rules add "always ask before deleting mail", and annabelle rules --help says more.'
    )
    event = TurnEvent(message_id=place.message_id, key=f"no_rule:{number}", type="notice", data={"text": text})
    return events.append(conn, place.thread_id, [event])
