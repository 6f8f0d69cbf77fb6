"""The one question about a call: was this act, on this object, for this receiver, ordered (POL-08)?

Object and receiver are spans of the person's own words, found for what the call names. Nothing else goes into it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from posixpath import basename
from typing import Final

from annabelle.policy.person_words import PersonWords, compound, content_words, find_addresses
from annabelle.policy.recipients import pages_of
from annabelle.policy.turn_facts import CallFacts, TurnFacts
from annabelle.policy.unsolicited_read import item_title, opens_items
from annabelle.policy.vocabulary import map_meanings

_OPENING: Final = "look up in the vault"
_MOST_CHARS: Final = 4_000
_MOST_SPANS: Final = 20
_WORD: Final = re.compile(r"[\w'-]+")
_WEIGHTY: Final = frozenset({"send_outside", "destroy", "execute", "control", "write_inside"})


@dataclass(frozen=True, slots=True)
class OrderQuestion:
    message: str
    acts: tuple[str, ...]
    objects: tuple[str, ...]
    receivers: tuple[str, ...]


def ask_about(call: CallFacts, turn: TurnFacts) -> OrderQuestion | None:
    """None if no order is needed, or if the person's words have no span for something the call is about."""
    traits, message = call.traits, turn.ordering_words
    acts = (_OPENING,) if opens_items(call) else traits.wants if _WEIGHTY & set(call.classes) else ()
    if not (acts and turn.tainted and 0 < len(message) <= _MOST_CHARS):
        return None
    targets = [*call.values((*traits.of, *traits.paths, *traits.files, *traits.urls))]
    objects = [find_span(message, _names_of(value, turn)) for value in targets]
    receivers = [find_span(message, _names_of(value, turn)) for value in call.values(traits.to)]
    if not all((*objects, *receivers)) or len(objects) + len(receivers) > _MOST_SPANS:
        return None
    if not targets:
        objects = [span for value in call.values(traits.values) if (span := find_span(message, [value]))]
    return OrderQuestion(message, acts, tuple(dict.fromkeys(objects)), tuple(dict.fromkeys(receivers)))


def find_span(message: str, names: Iterable[str]) -> str:
    """The longest part of the message that stands for one of the names, in the message's own letters; or nothing.

    An address is said as a whole or not at all; of a title some words may stand for it.
    """
    return max((_span_of(message, name.strip()) for name in names if name.strip()), key=len, default="")


def find_file(message: str, path: str) -> str:
    """The part of the message that stands for a file, by its name or the words of its name."""
    return find_span(message, _file_names(path))


def _file_names(path: str) -> list[str]:
    name = basename(path.rstrip("/"))
    return [path, name, name.rpartition(".")[0]]


def _span_of(message: str, name: str) -> str:
    whole = re.search(rf"(?<![\w@.]){re.escape(name)}(?![\w@]|\.\w)", message, re.IGNORECASE)
    if whole is not None:
        return whole.group()
    said = frozenset[str]() if find_addresses(name) or "://" in name else content_words(name)
    wanted = map_meanings(said | {compound(name)}) if said else said
    runs = groupby(_WORD.finditer(message), key=lambda word: bool(map_meanings(PersonWords([word[0]]).words) & wanted))
    spans = [[*words] for fits, words in runs if fits]
    return max((message[words[0].start() : words[-1].end()] for words in spans), key=len, default="")


def _names_of(value: str, turn: TurnFacts) -> list[str]:
    """What a person may call it: the value, a file by its name alone, and a thing that was seen by its title."""
    if "://" in value:
        return [value, item_title(value, turn)]
    things = turn.seen.find_by_id(value)
    senders = [part for thing in things for box in thing.mailboxes for part in box]
    receivers = {one for thing in things for one in thing.addresses("to", "attendees")} - {value}
    known = [title for one in receivers for thing in turn.seen.find_by_id(one) for title in thing.titles]
    titles = [title for thing in things for title in thing.titles]
    # Whether somebody of that name is meant at all is checked elsewhere.
    called = [value.partition("@")[0], *pages_of(value.casefold(), turn)] if "@" in value else []
    names = [value] if "@" in value else _file_names(value)
    return [*names, *titles, *senders, *receivers, *known, *called]
