"""A person's standing rules: stated, proposed, confirmed, revoked, and read before every call (TRU-05, I-13)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, cast

from pydantic import ValidationError
from sqlalchemy import Connection

from annabelle.core.errors import InvalidArguments
from annabelle.core.messages import CHAT_APPS, InboundMessage, StoredEvent, TurnEvent
from annabelle.core.ports import AuditTrail
from annabelle.core.secrets.forget_mask import FORGOTTEN_MASK
from annabelle.core.text import escape_invisible
from annabelle.core.tools import JsonObject
from annabelle.core.trust import ToolClass
from annabelle.hub.conversations.event_log import EventLog, WriteResult
from annabelle.language.lexicon import Lexicon, load_lexicon
from annabelle.policy.intent.grammar import SENTENCE
from annabelle.policy.intent.own_words import own_words
from annabelle.policy.rules.compiler import (
    CompiledRule,
    RuleAction,
    RuleNotUnderstood,
    compile_rule,
    find_stated_rules,
    rule_words,
)
from annabelle.policy.rules.phrases import RulePhrase, parse_phrase
from annabelle.policy.rules.rule import RuleMatch, StandingRule
from annabelle.store import rules, threads
from annabelle.store.database import Database
from annabelle.store.outbox import post
from annabelle.store.rules import NewRule, StoredRule

_SENTENCE: Final = re.compile(SENTENCE.pattern, re.IGNORECASE)
_MOST: Final = 3
"""Per message, so that a pasted page of rules does not flood the chat."""
_LONGEST: Final = 300
_AT_A_COMPUTER: Final[tuple[RuleAction, ...]] = ("delete", "send", "download")
"""Verbs that nearly always mean computer work. "Open" and "run" do not."""


class _MissedRulePatterns:
    """Patterns of rules in a form that is not understood (language/*/rules.toml)."""

    def __init__(self, lexicon: Lexicon) -> None:
        please, always_ask = lexicon.alternation("please"), lexicon.alternation("always_ask")
        adjacent, around = lexicon.alternation("before_the_verb"), lexicon.alternation("never_around_the_verb")
        self.always_ask = re.compile(rf"\W*(?:{please}\W+)?{always_ask}\b", re.IGNORECASE)
        self.for_good = lexicon.whole_words("for_good", re.IGNORECASE)
        self.before_the_verb = re.compile(rf"(?:\W|{adjacent}\b|(?P<around>{around}\b))*", re.IGNORECASE)
        self.past = re.compile(rf"{lexicon.alternation('past')}\b", re.IGNORECASE)


@cache
def _patterns() -> _MissedRulePatterns:
    return _MissedRulePatterns(load_lexicon("rules"))


@dataclass(frozen=True, slots=True)
class MissedRule:
    """A sentence that looks like a rule, and why it was not understood."""

    words: str
    why: str


def find_missed_rules(message: str) -> list[MissedRule]:
    """Sentences that state a lasting rule for Annabelle but were not understood."""
    found: list[MissedRule] = []
    for missed in _scan_sentences(own_words(message)):
        found.append(missed)
        if len(found) == _MOST:
            break
    return found


def _scan_sentences(text: str) -> Iterator[MissedRule]:
    for sentence in _SENTENCE.split(text):
        words = _strip_rules(sentence)
        if not words or len(words) > _LONGEST or words.endswith("?"):
            continue
        phrase = parse_phrase(words)
        if phrase is None:
            if _patterns().always_ask.match(words) and _deeds(words):
                yield MissedRule(words, "This is not of the form “ask me before …” or “never …”.")
            continue
        if not phrase.standing or not _is_order(words, phrase):
            continue
        try:
            compile_rule(words)
        except RuleNotUnderstood as trouble:
            yield MissedRule(words, str(trouble))


def _strip_rules(sentence: str) -> str:
    """The sentence without the rules it states. A full stop after a number does not end a sentence."""
    for rule in find_stated_rules(sentence):
        sentence = sentence.replace(rule.words, "")
    return sentence.strip()


def _is_order(words: str, phrase: RulePhrase) -> bool:
    """Whether it is an order Annabelle could follow. "I never eat meat" is not."""
    if phrase.kind == "ask":
        return bool(_deeds(words) or _patterns().for_good.search(words))
    before = _patterns().before_the_verb.match(phrase.rest)
    order = phrase.rest[before.end() :] if before is not None else phrase.rest
    first = [deed for deed, pattern in rule_words().actions.items() if pattern.match(order)]
    if _patterns().past.match(order) or not (first or (before is not None and before["around"] and _deeds(order))):
        return False
    return bool(set(_deeds(order)) & set(_AT_A_COMPUTER)) or _about_something(order)


def _deeds(words: str) -> list[RuleAction]:
    return [deed for deed, pattern in rule_words().actions.items() if pattern.search(words)]


def _about_something(words: str) -> bool:
    """Whether it names something Annabelle works with, or people that a rule cannot identify."""
    if any(pattern.search(words) for pattern in rule_words().objects.values()):
        return True
    return any(word in rule_words().not_a_name for word in re.findall(r"\w+", words.lower()))


_EXAMPLES = 'Say it like "always ask before deleting mail" or "never send anything to Bob".'


@dataclass(frozen=True, slots=True)
class RuleOrigin:
    user_id: str
    thread_id: str
    message_id: str


class StandingRules:
    """All access to the rules of this home. Every change is audited, without the words."""

    def __init__(self, database: Database, log: EventLog, audit: AuditTrail) -> None:
        self._database, self._log, self._audit = database, log, audit

    async def listing(self, user_id: str, *, revoked: bool = False) -> list[StoredRule]:
        return await self._database.read(lambda conn: rules.list_rules(conn, user_id, revoked=revoked))

    async def add(self, user_id: str, words: str, agent_id: str | None = None) -> StoredRule:
        """Add a rule that needs no confirmation. Raises InvalidArguments if it is not understood."""
        new = _new_rule(parse_rule(words), user_id, agent_id)
        rule = await self._database.write(lambda conn: rules.add_rule(conn, new, "active"))
        self._note("added", rule, user_id)
        return rule

    async def confirm(self, rule_id: str, user_id: str) -> StoredRule:
        rule = await self._database.write(lambda conn: rules.confirm_rule(conn, rule_id, user_id))
        self._note("confirmed", rule, user_id)
        return rule

    async def revoke(self, rule_id: str, user_id: str) -> StoredRule:
        rule = await self._database.write(lambda conn: rules.revoke_rule(conn, rule_id, user_id))
        self._note("revoked", rule, user_id)
        return rule

    async def propose(self, words: str, place: RuleOrigin) -> StoredRule:
        """Add an agent's proposal and tell the person. It takes effect when confirmed."""
        compiled = parse_rule(words)

        def write(conn: Connection) -> WriteResult[StoredRule]:
            rule = rules.add_rule(conn, _new_rule(compiled, place.user_id, None), "proposed")
            return WriteResult(rule, place.user_id, _tell_rule(conn, place, rule, compiled))

        rule = await self._log.transact(write)
        self._note("proposed", rule, place.user_id)
        return rule

    def add_stated_rules(self, conn: Connection, message: InboundMessage, place: RuleOrigin) -> list[StoredEvent]:
        """Add the rules a person states in a message. No model reads them.

        They ask at once and forbid once they are confirmed, since they may have been said in passing. The person is
        told of each and can revoke it. Rules that are not understood are reported and do not hold.
        """
        told: list[StoredEvent] = []
        for compiled in find_stated_rules(message.text):
            rule = rules.add_rule(conn, _new_rule(compiled, place.user_id, None), "stated")
            if rule.state == "stated":
                self._note("stated", rule, place.user_id)
                told += _tell_rule(conn, place, rule, compiled)
        for number, missed in enumerate(find_missed_rules(message.text)):
            told += _tell_missed(conn, place, number, missed)
        return told

    def _note(self, what: str, rule: StoredRule, user_id: str) -> None:
        facts: JsonObject = {"what": what, "rule_id": rule.id, "kind": rule.kind, "user_id": user_id}
        self._audit.note("rule", facts)


def parse_rule(words: str) -> CompiledRule:
    try:
        return compile_rule(words)
    except RuleNotUnderstood as trouble:
        raise InvalidArguments(f"The rule was not understood. {trouble}", hint=_EXAMPLES, field="words") from trouble


def describe_rule(rule: StoredRule) -> str:
    """The rule in plain words. Allowances keep their own words."""
    try:
        return rule.words if rule.kind == "allow" else compile_rule(rule.words).reading
    except RuleNotUnderstood:
        return "Asked about, because its words were forgotten."


def _new_rule(compiled: CompiledRule, user_id: str, agent_id: str | None) -> NewRule:
    return NewRule(user_id, compiled.kind, compiled.words, compiled.match.model_dump(mode="json"), agent_id)


def _tell_rule(conn: Connection, place: RuleOrigin, rule: StoredRule, compiled: CompiledRule) -> list[StoredEvent]:
    since = (
        "It holds once you say so" if rule.state == "proposed" else "You are asked until you say whether you meant it"
    )
    text = f"A rule: “{escape_invisible(rule.words)}” {compiled.reading} {since}"
    if threads.load_thread(conn, place.thread_id).channel in CHAT_APPS:
        answers = {"Yes": f"/rules confirm {rule.id}", "No": f"/rules revoke {rule.id}"}
        buttons = [{"label": label, "command": command} for label, command in answers.items()]
        return post(conn, place.thread_id, f"{text}.", f"rule:{rule.id}", {"rule_id": rule.id, "buttons": buttons})
    data: JsonObject = {"text": f"{text}: {_choice(rule)}", "rule_id": rule.id, "state": rule.state}
    event = TurnEvent(message_id=place.message_id, key=f"rule:{rule.id}", type="notice", data=data)
    return threads.append_events(conn, place.thread_id, [event])


def _choice(rule: StoredRule) -> str:
    return f"annabelle rules confirm {rule.id}, or: annabelle rules revoke {rule.id}"


def _tell_missed(conn: Connection, place: RuleOrigin, number: int, missed: MissedRule) -> list[StoredEvent]:
    why = missed.why.rstrip(".")
    text = (
        f"Not taken as a rule, so nothing of it holds: “{escape_invisible(missed.words)}” "
        f"({escape_invisible(why)}); write it like "
        'annabelle rules add "always ask before deleting mail", and annabelle rules --help says more.'
    )
    event = TurnEvent(message_id=place.message_id, key=f"no_rule:{number}", type="notice", data={"text": text})
    return threads.append_events(conn, place.thread_id, [event])


_log = logging.getLogger(__name__)
_ACTING: tuple[ToolClass, ...] = ("write_inside", "send_outside", "destroy", "execute", "control")


class StoredRules:
    """The rules of a user for one agent, read for each call so that changes take effect at once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def for_call(self, user_id: str, agent_id: str | None) -> tuple[StandingRule, ...]:
        stored = await self._database.read(lambda conn: rules.list_active_rules(conn, user_id, agent_id))
        return tuple(rule for rule in map(to_policy_rule, stored) if rule is not None)


def to_policy_rule(stored: StoredRule) -> StandingRule | None:
    """The rule as policy reads it.

    Forgotten words are masked in rules. A restriction is then widened by dropping the masked words. An allowance with a
    masked word is void.
    """
    whole = FORGOTTEN_MASK not in str(stored.match)
    if stored.kind == "allow" and not whole:
        return None
    try:
        match = RuleMatch.model_validate(stored.match if whole else _without_masks(stored.match))
    except ValidationError:
        _log.warning("The rule %s cannot be read", stored.id)
        match = RuleMatch()
    if stored.kind == "allow":
        return StandingRule(stored.id, "allow", stored.words, match)
    # A rule that was said in passing asks until the person confirms that it forbids.
    unsure = stored.state == "stated" and stored.kind == "never"
    words = f"{stored.words} Say whether you meant it as a rule: {_choice(stored)}" if unsure else stored.words
    if whole and match != RuleMatch():
        return StandingRule(stored.id, "ask" if unsure else stored.kind, words, match)
    return StandingRule(stored.id, "ask", words, RuleMatch(classes=_ACTING) if match == RuleMatch() else match)


def _without_masks(match: JsonObject) -> JsonObject:
    return {
        key: value
        for key, value in ((key, _drop_masked(value)) for key, value in match.items() if FORGOTTEN_MASK not in key)
        if value not in ({}, [])
    }


def _drop_masked(value: object) -> object:
    if isinstance(value, dict):
        entries = cast("JsonObject", value).items()
        return {
            name: globs for name, globs in entries if FORGOTTEN_MASK not in str(globs) and FORGOTTEN_MASK not in name
        }
    if isinstance(value, list) and FORGOTTEN_MASK in str(cast("object", value)):
        return []  # the words are alternatives, so without one the condition would match too little
    return cast("object", value)
