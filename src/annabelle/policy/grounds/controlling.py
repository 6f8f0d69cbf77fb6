"""What Annabelle is and whom it listens to changes by the person's word alone (I-13)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.intent.kinds import ActionKind
from annabelle.policy.people import unnamed
from annabelle.policy.provenance import backed

_WANTED: Final[tuple[ActionKind, ...]] = ("control", "update", "create", "remember", "schedule", "delete", "transfer")
_FEW: Final = 3


def doubts(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    traits = call.traits
    ordered = bool(set(traits.wants or _WANTED) & turn.orders)
    values = list(call.values(traits.values))
    theirs = bool(values) and backed(values, [turn.own_words])
    # Recombined, a person's words may say anything; a page they wrote out is that page.
    written_out = ordered and bool(values) and all(turn.now.page(value) for value in values)
    written_out |= turn.wants(traits.wants, traits.about) and all(_is_short(value, turn) for value in values)
    if turn.tainted and (turn.suspicious or not (theirs and ordered) or (turn.tainted_now and not written_out)):
        yield "this would change how Annabelle works, or what it lets through"
    elif not (ordered or theirs):
        yield "you did not ask for this change of how Annabelle works"
    for receiver in unnamed(call.values(traits.to), turn, traits.wants or _WANTED):
        yield f"you did not name {receiver}"


def _is_short(value: str, turn: TurnFacts) -> bool:
    """A name, a town, a trade, as the person wrote it."""
    return len(value.split()) <= _FEW and turn.now.verbatim(value)
