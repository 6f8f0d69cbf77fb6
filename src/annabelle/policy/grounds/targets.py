"""Whether what a call works on is what the person named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.grounds.why import short
from annabelle.policy.naming import content_words
from annabelle.policy.seen import Thing, best_named, siblings
from annabelle.policy.tools.nouns import says_all, speaks_of_many

_MAKING: Final = re.compile(r"(?:^|_)(?:create|add|make|quick|save|new)(?:_|$)")


def unnamed_ids(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    """What is not known or not named of the ids in a call, as parts of a sentence."""
    for value in call.values(call.traits.of):
        if not id_named(value, turn):
            things = turn.seen.of_id(value)
            called = short(_called(things[0])) if things else short(value)
            yield f"you did not name “{called}”" if things else f"it is not known what {called} is"


def id_named(value: str, turn: TurnFacts) -> bool:
    """Said as it is, or the id of a thing that was named rather than another."""
    if turn.said.verbatim(value) or (content_words(value) and turn.said.path(value)):
        return True
    return any(thing_named(thing, turn) for thing in turn.seen.of_id(value))


def thing_named(thing: Thing, turn: TurnFacts) -> bool:
    return best_named(thing, siblings(thing, turn.seen.things()), turn.said.words)


def made_here(value: str, turn: TurnFacts) -> bool:
    """Whether it was made in this conversation."""
    return any(_MAKING.search(thing.tool) for thing in turn.seen.of_id(value))


def one_of_many(value: str, turn: TurnFacts) -> bool:
    """Whether all of such things are meant, and none of them by its name: `mark my unread mails as read`."""
    if not speaks_of_many(turn.own_words):
        return False
    things = turn.seen.of_id(value)
    others = (other for thing in things for other in siblings(thing, turn.seen.things()))
    return bool(things) and not any(content_words(other.label) & turn.said.words for other in others)


def path_named(path: str, turn: TurnFacts) -> bool:
    """A file by its name, or one of all in a folder that was named."""
    said = turn.said
    return said.path(path) or (says_all(turn.topic) and not said.files and said.folder(path))


def _called(thing: Thing) -> str:
    return next(iter(thing.called), "") or thing.sender or thing.tool
