"""Strictly parses a model's JSON answer into facts or tidy actions; trust depends on who said it (MEM-07, MEM-09)."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from annabelle.core.contract import (
    ExtractBrief,
    ExtractResult,
    KnownFact,
    LearntFact,
    PastTurn,
    SummaryResult,
    TidyAction,
    TidyBrief,
    TidyFactsResult,
)
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.trust import FactCategory, Trust

_MAX_CHARS = 50_000
# Only if the whole answer is one fence: other text means that the model did not follow the instructions.
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)\n?```", re.DOTALL | re.IGNORECASE)

M = TypeVar("M", bound=BaseModel)


class MalformedAnswer(ValueError):
    """The answer cannot be used. The message says why without quoting it."""


class StrictElement(BaseModel):
    """One element of the array: exactly these fields, with exactly these types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def parse_array(element: type[M], text: str) -> list[M]:
    """The elements of the array; one invalid element makes the whole answer invalid."""
    text = text.strip()
    if not text:
        raise MalformedAnswer("The model's answer is empty.")
    if len(text) > _MAX_CHARS:
        raise MalformedAnswer(f"The model's answer is longer than {_MAX_CHARS} characters.")
    fence = _FENCED.fullmatch(text)
    try:
        content = cast("object", json.loads(fence.group(1) if fence else text, parse_constant=_refuse_constant))
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer("The model's answer is not a JSON array.") from error
    if not isinstance(content, list):
        raise MalformedAnswer("The model's answer is not a JSON array.")
    elements: list[M] = []
    for number, item in enumerate(cast("list[object]", content), start=1):
        try:
            # Through JSON again, because strict mode then accepts lists for tuples.
            elements.append(element.model_validate_json(json.dumps(item)))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "element"
            raise MalformedAnswer(
                f"Element {number} of the model's answer is wrong at {place[:60]!r}: {first['type']}."
            ) from error
    return elements


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_WORD = re.compile(r"\w+(?:[.@:/+-]+\w+)*")
_SPACE = re.compile(r"\s+")
_STEM_LETTERS = 4
_SHORTEST_WORD = 4
_SHORTEST_QUOTE_BYTES = 6
# Words of any fact about a person.
_COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        "user users person their they them that this with from have has been being were will would should about into "
        "also very when which what where who whose does done likes wants prefers named called",
    )
)


def normalise_text(text: str) -> str:
    """The text for comparison: NFKC, case-folded, single spaces, no quotation marks."""
    text = unicodedata.normalize("NFKC", html.unescape(text)).casefold()
    for mark in "\"'`´‘’‚“”„«»…":
        text = text.replace(mark, "")
    return _SPACE.sub(" ", text).strip(" .,;:!?-–—")


def is_quoted_in(quote: str, text: str) -> bool:
    """Whether the text contains this quote; False for a very short quote."""
    wanted = normalise_text(quote)
    # By bytes: three Chinese characters say as much as three words.
    said = "".join(character for character in wanted if character.isalnum())
    if len(said.encode(errors="replace")) < _SHORTEST_QUOTE_BYTES and wanted != normalise_text(text):
        return False
    return bool(wanted) and wanted in normalise_text(text)


def is_supported_by(statement: str, sources: Iterable[str]) -> bool:
    """Whether the sources support the statement, as far as words can tell.

    They must contain every number, address and link in it, and half of its other words by their first letters.
    """
    said = normalise_text("\n".join(sources))
    stems = {word[:_STEM_LETTERS] for word in _split_words(said)}
    wanted = [word for word in _split_words(normalise_text(statement)) if word not in _COMMON_WORDS]
    exact = [word for word in wanted if any(c.isdigit() or c in "@:/" for c in word)]
    if any(word not in said for word in exact):
        return False
    usual = [word for word in wanted if len(word) >= _SHORTEST_WORD and word not in exact]
    found = sum(word[:_STEM_LETTERS] in stems for word in usual)
    return found * 2 >= len(usual)


def _split_words(text: str) -> list[str]:
    return _WORD.findall(text)


_FACT_CHARS = 500
_QUOTE_CHARS = 2_000


class ExtractedFact(StrictElement):
    """One fact of the model's answer."""

    fact: str = Field(min_length=3, max_length=_FACT_CHARS)
    category: FactCategory
    confidence: float = Field(ge=0, le=1, allow_inf_nan=False)
    turn: int = Field(ge=1)
    quote: str = Field(min_length=1, max_length=_QUOTE_CHARS)


@dataclass(frozen=True, slots=True)
class FactExtraction:
    """The facts, and for the trace how many were dropped for which reason."""

    result: ExtractResult
    dropped: dict[str, int]


def parse_facts(answer: str, brief: ExtractBrief) -> FactExtraction:
    """The valid facts of an answer; none for a malformed answer."""
    try:
        found = parse_array(ExtractedFact, answer)
        if any(fact.turn > len(brief.turns) for fact in found):
            raise MalformedAnswer("The model's answer names a turn that does not exist.")
    except MalformedAnswer as error:
        return FactExtraction(ExtractResult(refused=str(error)), {})
    dropped: Counter[str] = Counter()
    kept: list[LearntFact] = []
    seen = {normalise_text(fact) for fact in brief.known}
    for fact in found:
        learnt = _check_fact(fact, brief, seen)
        if isinstance(learnt, str):
            dropped[learnt] += 1
        elif len(kept) == brief.max_facts:
            dropped["too many"] += 1
        else:
            kept.append(learnt)
            seen.add(normalise_text(learnt.fact))
    return FactExtraction(ExtractResult(facts=tuple(kept)), dict(dropped))


def _check_fact(found: ExtractedFact, brief: ExtractBrief, seen: set[str]) -> LearntFact | str:
    """The fact, or why it is dropped."""
    turn = brief.turns[found.turn - 1]
    text = " ".join(found.fact.split())
    if found.confidence < brief.min_confidence:
        return "confidence"
    if normalise_text(text) in seen:
        return "known"
    if _is_secret(text) or _is_secret(found.quote):
        return "secret"
    trust = _determine_trust(found, turn, brief)
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


def _determine_trust(found: ExtractedFact, turn: PastTurn, brief: ExtractBrief) -> Trust | None:
    """By who said the quoted words. None if nobody did, or only the assistant without a source."""
    if is_quoted_in(found.quote, turn.user):
        # A page in the answer may ask for a fact with a quote of the user, so the user must support all of it.
        others_spoke = any(_repeats_others(past) for past in brief.turns)
        own = not others_spoke or is_supported_by(found.fact, (past.user for past in brief.turns))
        return "trusted" if own else "untrusted"
    if _repeats_others(turn) and is_quoted_in(found.quote, turn.assistant):
        return "untrusted"
    # A model must not learn from its own unsupported statements.
    return None


def _repeats_others(turn: PastTurn) -> bool:
    return bool(turn.tools) or turn.trust == "untrusted"


def _is_secret(text: str) -> bool:
    return Redactor()(text) != text


_REASON_CHARS = 300
_SUMMARY_CHARS = 1_500


class TidyProposal(StrictElement):
    """One action of the model's answer."""

    action: Literal["merge", "update", "delete"]
    ids: list[int] = Field(min_length=1, max_length=200)
    fact: str | None = Field(default=None, min_length=3, max_length=_FACT_CHARS)
    category: FactCategory | None = None
    reason: str = Field(default="", max_length=2_000)


def parse_summary(answer: str) -> SummaryResult:
    """The answer in one paragraph, without secrets, or why there is none."""
    text = Redactor()(" ".join(answer.split()))
    return SummaryResult(summary=text[:_SUMMARY_CHARS], refused=None if text else "The model summed up nothing.")


def parse_actions(answer: str, brief: TidyBrief) -> TidyFactsResult:
    """The actions of a valid answer, or why it is refused."""
    facts = {fact.fact_id: fact for fact in brief.facts}
    actions: list[TidyAction] = []
    used: set[int] = set()
    try:
        for proposal in parse_array(TidyProposal, answer):
            _check_proposal(proposal, facts, used)
            used.update(proposal.ids)
            if not _changes_nothing(proposal, facts):
                actions.append(_make_action(proposal))
    except MalformedAnswer as error:
        return TidyFactsResult(refused=str(error))
    return TidyFactsResult(actions=tuple(actions))


def _check_proposal(proposal: TidyProposal, facts: dict[int, KnownFact], used: set[int]) -> None:
    ids = set(proposal.ids)
    if not ids <= facts.keys():
        raise MalformedAnswer("The model's answer names a fact that it was not given.")
    if len(ids) < len(proposal.ids) or ids & used:
        raise MalformedAnswer("The model's answer names a fact twice.")
    if proposal.action == "merge" and len(ids) < 2:
        raise MalformedAnswer("The model's answer merges a fact with nothing.")
    if proposal.action == "update" and len(ids) > 1:
        raise MalformedAnswer("The model's answer updates several facts at once.")
    if (proposal.fact is None) != (proposal.action == "delete"):
        raise MalformedAnswer("The model's answer has a new text where none belongs, or none where one does.")
    if proposal.fact is not None:
        _check_text(proposal.fact, [facts[number] for number in proposal.ids])


def _check_text(text: str, replaced: list[KnownFact]) -> None:
    """The new text gets the trust of what it replaces, so it must not say more (TRU-03)."""
    if len({fact.trust for fact in replaced}) > 1:
        raise MalformedAnswer("The model's answer merges facts of different trust.")
    if not is_supported_by(text, (fact.fact for fact in replaced)):
        raise MalformedAnswer("The model's answer says more than the facts it replaces.")
    if Redactor()(text) != text:
        raise MalformedAnswer("The model's answer has a text that looks like a secret.")


def _changes_nothing(proposal: TidyProposal, facts: dict[int, KnownFact]) -> bool:
    if proposal.action != "update" or proposal.fact is None:
        return False
    old = facts[proposal.ids[0]]
    return normalise_text(proposal.fact) == normalise_text(old.fact) and proposal.category in (None, old.category)


def _make_action(proposal: TidyProposal) -> TidyAction:
    return TidyAction(
        kind=proposal.action,
        fact_ids=tuple(proposal.ids),
        fact=None if proposal.fact is None else " ".join(proposal.fact.split()),
        category=proposal.category,
        reason=" ".join(proposal.reason.split())[:_REASON_CHARS],
    )
