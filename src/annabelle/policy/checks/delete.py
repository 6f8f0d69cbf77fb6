"""Reasons to ask before something is deleted, unless the person ordered it and named the target (POL-02)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from annabelle.policy.checks.send import is_trivial_value
from annabelle.policy.checks.targets import is_id_named, is_path_named, reasons_about_ids
from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.intent.orders import Order
from annabelle.policy.person_words import PersonWords, content_words
from annabelle.policy.turn_facts import CallFacts, TurnFacts, shorten
from annabelle.policy.vocabulary import map_meanings, mentions_any, says_all

_KINDS: Final = ("mail", "calendar", "chat", "file", "note", "todo", "contact", "label")
# Where something is that is to be deleted.
_PLACE: Final = re.compile(
    r"\b(?:from|off|out of|in|inside|within|on|at|aus|von|vom|im|auf|de|dans|sur|del|en|z|ze|w|we|na)\b[^,;]*"
)
_CALLED_OFF: Final = re.compile(r"(?:cancel|call off|sage?\b|absag|stornier|annul|canc[eé]la|odwołaj)")
_DELETING: Final[tuple[ActionKind, ...]] = ("delete",)


def reasons_to_ask(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    traits = call.traits
    wants = traits.wants if "destroy" in traits.classes and traits.wants else _DELETING
    orders = turn.orders_of(wants)
    if not orders:
        yield "you did not ask for this to be deleted" if traits.known else "you did not ask for this"
    elif _means_another_kind(call, orders):
        yield "what you want deleted is of another kind"
    elif all(_means_only_a_part(order, call, turn) for order in orders):
        yield "you want something in it deleted, not all of it"
    for path in call.values(traits.paths):
        if not is_path_named(path, turn, wants):
            yield f"you did not name {shorten(path)}"
    if traits.known:
        yield from reasons_about_ids(call, turn, wants)
    else:
        for value in call.values((*traits.of, *traits.files, *traits.to)):
            if not (is_id_named(value, turn) or is_trivial_value(value) or turn.said.names_address(value)):
                yield f"you did not name {shorten(value)}"
    if not any(call.values((*traits.paths, *traits.of, *traits.files, *traits.to))):
        yield "it is not known what it would change"


def _means_another_kind(call: CallFacts, orders: Sequence[Order]) -> bool:
    """Whether every order is about something else."""
    about = call.traits.about
    if not about or any(mentions_any(order.objects, about) for order in orders):
        return False
    if any(mentions_any(order.objects, [kind for kind in _KINDS if kind not in about]) for order in orders):
        return True
    return "calendar" not in about and all(_CALLED_OFF.match(order.words) for order in orders)


def _means_only_a_part(order: Order, call: CallFacts, turn: TurnFacts) -> bool:
    """Whether the order takes something else out of it: `delete milk from Groceries`, `take Bob off the meeting`."""
    # Where the verb is last, its order is one word.
    words, objects = (order.words, order.objects) if " " in order.words.strip() else (turn.said_now.text,) * 2
    part, place = _PLACE.sub(" ", objects), " ".join(_PLACE.findall(f"{words};{objects}"))
    if not place and words in objects:
        return False
    if mentions_any(part, call.traits.about[:1]) or _names_target(part, call, turn):
        return False
    if _names_target(place, call, turn):
        return not says_all(part) or not call.traits.paths
    said = map_meanings(content_words(place))
    if any(thing.sender_meanings & said for thing in turn.things_of(call)):
        return mentions_any(place, call.traits.about[:1])  # "the attachment from Bob's mail", not "that thing from Bob"
    return bool(content_words(part) - content_words(order.words.partition(" ")[0]))


def _names_target(text: str, call: CallFacts, turn: TurnFacts) -> bool:
    said = map_meanings(content_words(text))
    names = [name for thing in turn.things_of(call) for name in thing.titles] or call.values(call.traits.of)
    paths = call.values(call.traits.paths)
    return any(map_meanings(content_words(name)) & said for name in names) or any(
        PersonWords([text]).names_path(path) or PersonWords([text]).names_folder(path) for path in paths
    )
