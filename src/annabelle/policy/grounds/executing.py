"""Running code needs no question before foreign content was seen; after that only for code that is not from there, and
in the same turn only for code that just computes. The sandbox has no network and sees one folder at most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from annabelle.policy.calm_code import is_calm
from annabelle.policy.facts import CallFacts, TurnFacts
from annabelle.policy.naming import plain
from annabelle.policy.tools.nouns import mentions

_TELLING: Final = 8


def doubts(call: CallFacts, turn: TurnFacts) -> Iterator[str]:
    if not turn.tainted:
        return
    programs = list(call.values(call.traits.code))
    lines = [line for code in programs for line in map(plain, code.splitlines()) if line]
    if lines and all(line in turn.now.text for line in lines):
        return  # the person's own code, word for word
    calm = bool(programs) and all(is_calm(code, turn.said) for code in programs)
    if turn.suspicious or turn.pried or not _ordered(call, turn) or (turn.tainted_now and not calm):
        yield "this would run code that you did not write"
    elif any(len(line) >= _TELLING and line in turn.seen.foreign for line in lines):
        yield "the code stands in that content"


def _ordered(call: CallFacts, turn: TurnFacts) -> bool:
    """What is only kept or fetched needs more than an order to keep or fetch something."""
    traits = call.traits
    if turn.wants(traits.wants, traits.about):
        return True
    spoken_of = "run" in turn.orders or any(mentions(order.words, traits.about) for order in turn.ordered)
    return "run" in traits.wants and spoken_of
