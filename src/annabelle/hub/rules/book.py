"""The book policy reads before every call. It stands in the database, so no context, restart or session changes it."""

from __future__ import annotations

import logging
from typing import cast

from pydantic import ValidationError

from annabelle.core.masking import MASK
from annabelle.core.tools import JsonObject
from annabelle.core.trust import ToolClass
from annabelle.policy.rules.rule import Match, Rule
from annabelle.store import rules
from annabelle.store.database import Database
from annabelle.store.rules import StoredRule

_log = logging.getLogger(__name__)
_ACTING: tuple[ToolClass, ...] = ("write_inside", "send_outside", "destroy", "execute", "control")


class StoredRuleBook:
    """The rules of a person for one of their agents, read anew for each call: one that was revoked a moment ago is
    revoked, and one that was stated a moment ago holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def for_call(self, user_id: str, agent_id: str | None) -> tuple[Rule, ...]:
        stored = await self._database.read(lambda conn: rules.active_for(conn, user_id, agent_id))
        return tuple(rule for rule in map(readable, stored) if rule is not None)


def readable(stored: StoredRule) -> Rule | None:
    """The rule as policy reads it.

    What was forgotten out of a rule is masked in it. A restriction then reads wider, never narrower: without the word
    that is gone. An allowance that lost a word is none any more.
    """
    whole = MASK not in str(stored.match)
    if stored.kind == "allow" and not whole:
        return None
    try:
        match = Match.model_validate(stored.match if whole else _without_masks(stored.match))
    except ValidationError:
        _log.warning("The rule %s can not be read", stored.id)
        match = Match()
    if stored.kind == "allow":
        return Rule(stored.id, "allow", stored.words, match)
    if whole and match != Match():
        return Rule(stored.id, stored.kind, stored.words, match)
    return Rule(stored.id, "ask", stored.words, Match(classes=_ACTING) if match == Match() else match)


def _without_masks(match: JsonObject) -> JsonObject:
    return {
        key: value
        for key, value in ((key, _kept(value)) for key, value in match.items() if MASK not in key)
        if value not in ({}, [])
    }


def _kept(value: object) -> object:
    if isinstance(value, dict):
        entries = cast("JsonObject", value).items()
        return {name: globs for name, globs in entries if MASK not in str(globs) and MASK not in name}
    if isinstance(value, list) and MASK in str(cast("object", value)):
        return []  # of several words one is enough, so without one of them the condition says too little
    return cast("object", value)
