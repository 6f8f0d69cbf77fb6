"""Deleting needs no question when the person ordered it and named what goes (POL-02)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.grounds.sending import says_nothing
from annabelle.policy.grounds.targets import id_named, path_named, unnamed_ids
from annabelle.policy.grounds.why import short
from annabelle.policy.intent.kinds import ActionKind

_DELETING: Final[tuple[ActionKind, ...]] = ("delete",)


def doubts(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    traits = call.traits
    wants = traits.wants if "destroy" in traits.classes and traits.wants else _DELETING
    if not set(wants) & turn.orders:
        yield "you did not ask for this to be deleted" if traits.known else "you did not ask for this"
    for path in call.values(traits.paths):
        if not path_named(path, turn, wants):
            yield f"you did not name {short(path)}"
    if traits.known:
        yield from unnamed_ids(call, turn, wants)
    else:
        for value in call.values((*traits.of, *traits.files, *traits.to)):
            if not (id_named(value, turn) or says_nothing(value) or turn.said.address(value)):
                yield f"you did not name {short(value)}"
    if not any(call.values((*traits.paths, *traits.of, *traits.files, *traits.to))):
        yield "it is not known what it would change"
    if turn.suspicious:
        yield "something in it looks like an attempt to give orders"
