"""Plans how facts might be tidied, by the model or else by rules, and does what a plan says (MEM-07)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from annabelle.core.contract import KnownFact, TidyAction, TidyBrief, TidyResult
from annabelle.core.errors import Unavailable
from annabelle.core.ids import new_id
from annabelle.core.memory import FactCategory
from annabelle.hub.memory.memory_tools import MemoryTools, Owned, Tidied, TidyPlan
from annabelle.hub.memory.thinking import Thinking

_log = logging.getLogger(__name__)
MOST_FACTS: Final = 200
FEWEST_FACTS: Final = 2
Planner = Literal["model", "rules", "model and rules", "you"]
NEXT: Final = "Undo it with memory_undo_change."


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done, by whom it was planned, and why not by the model where it was not."""

    facts: tuple[KnownFact, ...]
    actions: tuple[TidyAction, ...]
    planned_by: Planner
    refused: str | None = None

    def lines(self) -> list[str]:
        """Each action as a line a person can read."""
        texts = {fact.fact_id: fact.fact for fact in self.facts}
        return [describe(action, texts) for action in self.actions]


class Tidying:
    """Nothing is changed by planning; what is done can be undone in one piece."""

    def __init__(self, memory: MemoryTools, thinking: Thinking) -> None:
        self._memory, self._thinking = memory, thinking

    async def plan(self, owned: Owned, category: FactCategory | None, most: int) -> Plan:
        """Ask the model, category by category; where it can not or will not, the rules decide."""
        found = await self._memory.tidy_plan(owned, category, min(most, MOST_FACTS))
        actions: list[TidyAction] = []
        planners: set[str] = set()
        refused: str | None = None
        for name in get_args(FactCategory):
            facts = tuple(fact for fact in found.facts if fact.category == name)[:most]
            if len(facts) < FEWEST_FACTS:
                continue
            answer = await self._ask(owned, facts)
            if answer.refused is None:
                planners.add("model")
                actions += _sound(answer.actions, facts)
            else:
                planners.add("rules")
                refused = answer.refused
                actions += _of(found, facts)
        return Plan(found.facts, tuple(actions), _planner(planners), refused)

    async def apply(self, owned: Owned, actions: Sequence[TidyAction], planned_by: Planner) -> Tidied:
        return await self._memory.apply_tidy(owned, actions, planned_by) if actions else Tidied()

    async def _ask(self, owned: Owned, facts: tuple[KnownFact, ...]) -> TidyResult:
        brief = TidyBrief(
            tidy_id=new_id("tidy"), user_id=owned.user_id, trace_id=owned.trace_id or new_id("tr"), facts=facts
        )
        try:
            return await self._thinking.tidy(owned.agent_id, brief)
        except Unavailable as trouble:
            _log.info("The rules tidy instead of the model: %s", trouble.message)
            return TidyResult(refused=trouble.message)


def describe(action: TidyAction, texts: dict[int, str]) -> str:
    """One action in a sentence."""
    old = ", ".join(f"“{texts.get(fact_id, f'fact {fact_id}')}”" for fact_id in action.fact_ids)
    why = f" ({action.reason})" if action.reason else ""
    if action.kind == "delete":
        return f"delete {old}{why}"
    return f"{action.kind} {old} into “{action.fact}”{why}"


def _sound(actions: Sequence[TidyAction], facts: Sequence[KnownFact]) -> list[TidyAction]:
    """Only what concerns these facts; a model may name others by mistake."""
    known = {fact.fact_id for fact in facts}
    return [action for action in actions if set(action.fact_ids) <= known]


def _of(found: TidyPlan, facts: Sequence[KnownFact]) -> list[TidyAction]:
    return _sound(found.actions, facts)


def _planner(planners: set[str]) -> Planner:
    if planners == {"model", "rules"}:
        return "model and rules"
    return "rules" if planners == {"rules"} else "model"
