"""Reads a model's answer into facts, strictly; their trust follows from who said the words (MEM-07, MEM-09)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pydantic import Field

from annabelle.core.contract import ExtractBrief, ExtractResult, LearntFact, PastTurn
from annabelle.core.memory import FactCategory, Trust
from annabelle.core.redact import Redactor
from annabelle.thinker.learn.answer import Malformed, Strict, array_of
from annabelle.thinker.learn.words import backed_by, plain, stands_in

_FACT_CHARS = 500
_QUOTE_CHARS = 2_000


class FoundFact(Strict):
    """One fact as the model answers it."""

    fact: str = Field(min_length=3, max_length=_FACT_CHARS)
    category: FactCategory
    confidence: float = Field(ge=0, le=1, allow_inf_nan=False)
    turn: int = Field(ge=1)
    quote: str = Field(min_length=1, max_length=_QUOTE_CHARS)


@dataclass(frozen=True, slots=True)
class Extracted:
    """What is kept, and for the trace how many facts were dropped for which reason."""

    result: ExtractResult
    dropped: dict[str, int]


def read_facts(answer: str, brief: ExtractBrief) -> Extracted:
    """The facts of an answer that keep every rule; a malformed answer teaches nothing."""
    try:
        found = array_of(FoundFact, answer)
        if any(fact.turn > len(brief.turns) for fact in found):
            raise Malformed("The model's answer names a turn that does not exist.")
    except Malformed as error:
        return Extracted(ExtractResult(refused=str(error)), {})
    dropped: Counter[str] = Counter()
    kept: list[LearntFact] = []
    seen = {plain(fact) for fact in brief.known}
    for fact in found:
        learnt = _judge(fact, brief, seen)
        if isinstance(learnt, str):
            dropped[learnt] += 1
        elif len(kept) == brief.max_facts:
            dropped["too many"] += 1
        else:
            kept.append(learnt)
            seen.add(plain(learnt.fact))
    return Extracted(ExtractResult(facts=tuple(kept)), dict(dropped))


def _judge(found: FoundFact, brief: ExtractBrief, seen: set[str]) -> LearntFact | str:
    """The fact as it is passed on, or why it is dropped."""
    turn = brief.turns[found.turn - 1]
    text = " ".join(found.fact.split())
    if found.confidence < brief.min_confidence:
        return "confidence"
    if plain(text) in seen:
        return "known"
    if _secret(text) or _secret(found.quote):
        return "secret"
    trust = _trust(found, turn, brief)
    if trust is None:
        return "quote"
    return LearntFact(
        fact=text,
        category=found.category,
        confidence=found.confidence,
        conversation_id=turn.conversation_id,
        quote=found.quote.strip(),
        trust=trust,
    )


def _trust(found: FoundFact, turn: PastTurn, brief: ExtractBrief) -> Trust | None:
    """By where the words stand. None when they stand nowhere, or only where the assistant talks by itself."""
    if stands_in(found.quote, turn.user):
        # An answer that repeats a page may ask for a fact and lend it some words of the user: then it says more.
        others_spoke = any(_repeats_others(past) for past in brief.turns)
        own = not others_spoke or backed_by(found.fact, (past.user for past in brief.turns))
        return "trusted" if own else "untrusted"
    if _repeats_others(turn) and stands_in(found.quote, turn.assistant):
        return "untrusted"
    # What the assistant said without any source would come back to it as knowledge: a model must not teach itself.
    return None


def _repeats_others(turn: PastTurn) -> bool:
    return bool(turn.tools) or turn.trust == "untrusted"


def _secret(text: str) -> bool:
    return Redactor()(text) != text
