"""Running code needs no question before foreign content was seen; after that only for code that is not from there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.naming import plain

_TELLING: Final = 8


def doubts(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    if not turn.tainted:
        return
    lines = [line for code in call.values(call.traits.code) for line in map(plain, code.splitlines()) if line]
    if lines and all(line in turn.now.text for line in lines):
        return  # the person's own code, word for word
    traits = call.traits
    # What is only kept or fetched needs more than an order to keep or fetch something.
    ordered = "run" in turn.orders or turn.wants(traits.wants, traits.about)
    if turn.tainted_now or turn.suspicious or not ordered:
        yield "this would run code that you did not write"
        return
    if any(len(line) >= _TELLING and line in turn.seen.foreign for line in lines):
        yield "the code stands in that content"
