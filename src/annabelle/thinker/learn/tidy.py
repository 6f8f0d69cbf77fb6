"""Reads a model's answer into proposed changes of facts; one that breaks a rule makes the whole answer no use."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from annabelle.core.contract import KnownFact, TidyAction, TidyBrief, TidyResult
from annabelle.core.memory import FactCategory
from annabelle.core.redact import Redactor
from annabelle.thinker.learn.answer import Malformed, Strict, array_of
from annabelle.thinker.learn.words import backed_by, plain

_FACT_CHARS = 500
_REASON_CHARS = 300


class Proposal(Strict):
    """One action as the model answers it."""

    action: Literal["merge", "update", "delete"]
    ids: list[int] = Field(min_length=1, max_length=200)
    fact: str | None = Field(default=None, min_length=3, max_length=_FACT_CHARS)
    category: FactCategory | None = None
    reason: str = Field(default="", max_length=2_000)


def read_actions(answer: str, brief: TidyBrief) -> TidyResult:
    """The actions of an answer that keeps every rule, else why it does not."""
    facts = {fact.fact_id: fact for fact in brief.facts}
    actions: list[TidyAction] = []
    used: set[int] = set()
    try:
        for proposal in array_of(Proposal, answer):
            _check(proposal, facts, used)
            used.update(proposal.ids)
            if not _changes_nothing(proposal, facts):
                actions.append(_action(proposal))
    except Malformed as error:
        return TidyResult(refused=str(error))
    return TidyResult(actions=tuple(actions))


def _check(proposal: Proposal, facts: dict[int, KnownFact], used: set[int]) -> None:
    ids = set(proposal.ids)
    if not ids <= facts.keys():
        raise Malformed("The model's answer names a fact that it was not given.")
    if len(ids) < len(proposal.ids) or ids & used:
        raise Malformed("The model's answer names a fact twice.")
    if proposal.action == "merge" and len(ids) < 2:
        raise Malformed("The model's answer merges a fact with nothing.")
    if proposal.action == "update" and len(ids) > 1:
        raise Malformed("The model's answer updates several facts at once.")
    if (proposal.fact is None) != (proposal.action == "delete"):
        raise Malformed("The model's answer has a new text where none belongs, or none where one does.")
    if proposal.fact is not None:
        _check_text(proposal.fact, [facts[number] for number in proposal.ids])


def _check_text(text: str, replaced: list[KnownFact]) -> None:
    """The new text gets the trust of what it replaces, so nothing else may find its way into it (TRU-03)."""
    if len({fact.trust for fact in replaced}) > 1:
        raise Malformed("The model's answer merges facts of different trust.")
    if not backed_by(text, (fact.fact for fact in replaced)):
        raise Malformed("The model's answer says more than the facts it replaces.")
    if Redactor()(text) != text:
        raise Malformed("The model's answer has a text that looks like a secret.")


def _changes_nothing(proposal: Proposal, facts: dict[int, KnownFact]) -> bool:
    if proposal.action != "update" or proposal.fact is None:
        return False
    old = facts[proposal.ids[0]]
    return plain(proposal.fact) == plain(old.fact) and proposal.category in (None, old.category)


def _action(proposal: Proposal) -> TidyAction:
    return TidyAction(
        kind=proposal.action,
        fact_ids=tuple(proposal.ids),
        fact=None if proposal.fact is None else " ".join(proposal.fact.split()),
        category=proposal.category,
        reason=" ".join(proposal.reason.split())[:_REASON_CHARS],
    )
