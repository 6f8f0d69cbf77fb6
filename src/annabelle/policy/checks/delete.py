"""Reasons to ask before something is deleted, unless the person ordered it and named the target (POL-02)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from annabelle.policy.checks.send import is_trivial_value
from annabelle.policy.checks.targets import is_id_named, is_path_named, reasons_about_ids
from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.policy.person_words import content_words
from annabelle.policy.turn_facts import CallFacts, TurnFacts, shorten
from annabelle.policy.vocabulary import map_meanings, mentions_any

_KINDS: Final = ("mail", "calendar", "chat", "file", "note", "todo", "contact", "label")
_TAKEN_OUT: Final = re.compile(
    r"(?:remove|take|drop|uninvite|entfern\w*|retire|quita|usuń)\b.* (?:from|off|out of|aus|von|vom|de|del|du|z|ze)\b"
)
_CALLED_OFF: Final = re.compile(r"(?:cancel|call off|sage?\b|absag|stornier|annul|canc[eé]la|odwołaj)")
_DELETING: Final[tuple[ActionKind, ...]] = ("delete",)


def reasons_to_ask(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    traits = call.traits
    wants = traits.wants if "destroy" in traits.classes and traits.wants else _DELETING
    if not set(wants) & turn.order_kinds:
        yield "you did not ask for this to be deleted" if traits.known else "you did not ask for this"
    elif _means_another_kind(call, turn, wants):
        yield "what you want deleted is of another kind"
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
    if turn.suspicious:
        yield "something in it looks like an attempt to give orders"


def _means_another_kind(call: CallFacts, turn: TurnFacts, wants: Sequence[ActionKind]) -> bool:
    """Whether every order is about something else: taking somebody off a meeting does not cancel it."""
    orders = turn.orders_of(wants)
    about = call.traits.about
    if not about or any(mentions_any(order.objects, about) for order in orders):
        return False
    if any(mentions_any(order.objects, [kind for kind in _KINDS if kind not in about]) for order in orders):
        return True
    if "calendar" not in about and orders and all(_CALLED_OFF.match(order.words) for order in orders):
        return True
    taken_out = [order for order in orders if _TAKEN_OUT.match(order.words)]
    if len(taken_out) < len(orders):
        return False
    things = turn.things_of(call)
    spoken = map_meanings(content_words(" ".join(order.objects for order in taken_out)))
    return bool(things) and not any(thing.word_meanings & spoken for thing in things)
