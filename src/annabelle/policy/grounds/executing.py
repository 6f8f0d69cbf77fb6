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
    ordered = _ordered(call, turn)
    if lines and all(line in (plain(turn.words) if ordered else turn.now.text) for line in lines):
        return  # the person's own code, word for word, or code they hand over to be run
    if turn.suspicious or turn.pried or not ordered or (turn.tainted_now and not _is_calm(call, turn)):
        yield "this would run code that you did not write"
    elif any(len(line) >= _TELLING and line in turn.seen.foreign for line in lines):
        yield "the code stands in that content"


def _is_calm(call: CallFacts, turn: TurnFacts) -> bool:
    session = str(call.arguments.get("session_id") or "")
    known = [thing.fields.get("language") for thing in turn.seen.of_id(session)]
    language = call.arguments.get("language") or next(iter(known), None)
    code = call.arguments.get("code")
    return (
        language == "python" and isinstance(code, str) and not call.arguments.get("args") and is_calm(code, turn.said)
    )


def _ordered(call: CallFacts, turn: TurnFacts) -> bool:
    """What is only kept or fetched needs more than an order to keep or fetch something."""
    traits = call.traits
    if turn.wants(traits.wants, traits.about):
        return True
    spoken_of = "run" in turn.orders or (bool(turn.ordered) and mentions(turn.own_words, traits.about))
    return "run" in traits.wants and spoken_of
