"""Proposes how facts might be tidied without a model: what says the same is merged, what another fact holds goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from annabelle.core.contract import TidyAction
from annabelle.servers.memory.keywords import keywords, overlap
from annabelle.servers.memory.statement import Statement, read_statement
from annabelle.store.memory.facts import Fact

SAME_WORDS = 0.8
SAME_MEANING = 0.92
FEWEST_WORDS = 2
"""Two facts of one word each, "likes tea" and "hates tea", are alike in words only."""

_NUMBERS = re.compile(r"\d+")
_NO = re.compile(r"(?i)\b(?:not?|never|none|without|n't|kein\w*|nicht|nie|ne|pas|sin|nunca)\b|n't\b")

Cosine = Callable[[int, int], float]


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A fact with what it is compared by."""

    fact: Fact
    words: frozenset[str]
    numbers: frozenset[str]
    denied: bool
    stated: Statement | None

    def says_other(self, other: _Weighed) -> bool:
        """Another number, a no, or another value of the same relation: alike, and yet not the same."""
        if self.numbers != other.numbers or self.denied != other.denied:
            return True
        return bool(self.stated and other.stated and self.stated.contradicts(other.stated))


def propose(facts: Sequence[Fact], cosine: Cosine) -> list[TidyAction]:
    """What might be done with facts of one category. Each fact is in one action at most."""
    weighed = sorted((_weigh(fact) for fact in facts), key=_worth, reverse=True)
    taken: set[int] = set()
    actions: list[TidyAction] = []
    for best in weighed:
        if best.fact.id in taken:
            continue
        rest = [one for one in weighed if one.fact.id not in taken and one is not best and not best.says_other(one)]
        held = [one for one in rest if _holds(best, one)]
        same = [one for one in rest if one not in held and _same(best, one, cosine)]
        if same:
            group = [best, *same, *(one for one in held if one.fact.trust == best.fact.trust)]
            actions.append(_merge(group))
        elif held:
            group = [best, *held]
            actions.append(_delete(best, held))
        else:
            continue
        taken.update(one.fact.id for one in group)
    return actions


def _weigh(fact: Fact) -> _Weighed:
    numbers = frozenset(_NUMBERS.findall(fact.fact))
    return _Weighed(fact, keywords(fact.fact), numbers, bool(_NO.search(fact.fact)), read_statement(fact.fact))


def _worth(one: _Weighed) -> tuple[object, ...]:
    """Trusted, rich, sure and new ones are kept; the id settles the rest."""
    fact = one.fact
    return fact.trust == "trusted", len(one.words), fact.confidence, fact.updated_at, fact.id


def _holds(one: _Weighed, other: _Weighed) -> bool:
    """Whether every word of the other is in this one, and no trust is lost by keeping this one only."""
    return (
        len(other.words) >= FEWEST_WORDS
        and other.words <= one.words
        and not (other.fact.trust == "trusted" and one.fact.trust == "untrusted")
    )


def _same(one: _Weighed, other: _Weighed, cosine: Cosine) -> bool:
    if one.fact.trust != other.fact.trust:
        return False  # merged, the trusted one would be untrusted
    alike = min(len(one.words), len(other.words)) >= FEWEST_WORDS and overlap(one.words, other.words) >= SAME_WORDS
    return alike or cosine(one.fact.id, other.fact.id) >= SAME_MEANING


def _merge(group: Sequence[_Weighed]) -> TidyAction:
    first = max(group, key=lambda one: (one.fact.confidence, one.fact.updated_at, one.fact.id))
    return TidyAction(
        kind="merge",
        fact_ids=tuple(sorted(one.fact.id for one in group)),
        fact=first.fact.fact,
        category=first.fact.category,
        reason="they say the same",
    )


def _delete(best: _Weighed, held: Sequence[_Weighed]) -> TidyAction:
    return TidyAction(
        kind="delete", fact_ids=tuple(sorted(one.fact.id for one in held)), reason=f"fact {best.fact.id} says it all"
    )
