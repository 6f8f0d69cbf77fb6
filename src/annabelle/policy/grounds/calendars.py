"""Whose calendar an event goes into: what stands in somebody else's is told to them, without any guest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.grounds.sending import taken_along
from annabelle.policy.grounds.why import short
from annabelle.policy.naming import content_words, hides_something
from annabelle.policy.seen import Thing

_MAIN: Final = "primary"
_LISTS: Final = "gmail_list_calendars"
_NOUN: Final = r"(?:cal[ae]nd[ae]r|diary|kalender|calendrier|agenda|calendario|kalendarz\w*)"
# "The family calendar", "Bob's calendar"; "the calendar called Family"; in one word, "Familienkalender".
_BEFORE: Final = re.compile(
    rf"\b(?:my|our|the|in|into|on|to|den|dem|meinen|unseren|im|mon|le|mi|el|do|w) ((?:[\w'-]+ ){{1,2}}){_NOUN}\b"
)
_BEHIND: Final = re.compile(
    rf"\b{_NOUN}(?: (?:called|named|of|for|de la|de|del|du|namens|von|für|o nazwie))? ([\w'-]+(?: [\w'-]+)?)"
)
_WITHIN: Final = re.compile(rf"\b(\w{{3,}}?)-?{_NOUN}\b")
_ALIKE: Final = 5


def doubts(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """The person's main calendar needs no word, nor the one an event is in; any other must be named as a calendar."""
    if not turn.tainted:
        return
    for value in call.values(call.traits.within):
        if _is_main(value, turn):
            continue
        if not (_is_there(value, call, turn) or _is_named(value, turn)):
            yield f"you did not name the calendar {short(_name_of(value, turn))}"
        if "write_inside" in call.classes:
            yield from taken_along(call, turn)  # others may see it


def _is_main(value: str, turn: TurnFacts) -> bool:
    known = [thing.fields.get("primary") is True for thing in _calendars(value, turn)]
    return value == _MAIN or value.casefold() in turn.own or (bool(known) and all(known))


def _is_there(value: str, call: CallFacts, turn: TurnFacts) -> bool:
    """Whether the event that is changed was seen in this calendar, and in no other."""
    places = {place for thing in turn.things_of(call) for place in thing.texts("calendar_id")}
    return places == {value}


def _is_named(value: str, turn: TurnFacts) -> bool:
    if hides_something(value):
        return False
    text = turn.said.text
    spoken = content_words(
        " ".join(found for pattern in (_BEFORE, _BEHIND, _WITHIN) for found in pattern.findall(text))
    )
    names = content_words(value) if not _calendars(value, turn) else content_words(_name_of(value, turn))
    return any(one[:_ALIKE] == other[:_ALIKE] for one in names for other in spoken)


def _name_of(value: str, turn: TurnFacts) -> str:
    return next((name for thing in _calendars(value, turn) for name in thing.texts("name")), value)


def _calendars(value: str, turn: TurnFacts) -> list[Thing]:
    return [thing for thing in turn.seen.of_id(value) if thing.tool == _LISTS]
