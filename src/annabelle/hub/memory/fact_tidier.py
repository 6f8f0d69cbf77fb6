"""Plans how facts are merged or retired, by the model or by rules, and applies a plan (MEM-07)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

from annabelle.core.contract import KnownFact, TidyAction, TidyBrief, TidyFactsResult
from annabelle.core.errors import AnnabelleError, Unavailable
from annabelle.core.ids import new_id
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.core.trust import FactCategory
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.agents.thinker_calls import ThinkerQuestions
from annabelle.hub.memory.memory_client import (
    MemoryClient,
    MemoryOwner,
    TidyOutcome,
    resolve_memory_owner,
)
from annabelle.toolbox.catalogue import OWN_WORDS, NativeTool, native_tool, number_parameter

_log = logging.getLogger(__name__)
MOST_FACTS: Final = 200
FEWEST_FACTS: Final = 2
Planner = Literal["model", "rules", "model and rules", "you"]
NEXT: Final = "Undo it with memory_undo_change."


@dataclass(frozen=True, slots=True)
class FactTidyPlan:
    """Proposed actions, who planned them, and why the model did not if rules did."""

    facts: tuple[KnownFact, ...]
    actions: tuple[TidyAction, ...]
    planned_by: Planner
    refused: str | None = None

    def lines(self) -> list[str]:
        texts = {fact.fact_id: fact.fact for fact in self.facts}
        return [describe_action(action, texts) for action in self.actions]


class FactTidier:
    """Plans changes without making them. An applied plan can be undone as a whole."""

    def __init__(self, memory: MemoryClient, thinking: ThinkerQuestions) -> None:
        self._memory, self._thinking = memory, thinking

    async def plan(self, owned: MemoryOwner, category: FactCategory | None, most: int) -> FactTidyPlan:
        """Ask the model for each category. Where it fails or refuses, rules decide."""
        found = await self._memory.plan_tidy(owned, category, min(most, MOST_FACTS))
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
                actions += _actions_within(answer.actions, facts)
            else:
                planners.add("rules")
                refused = answer.refused
                actions += _actions_within(found.actions, facts)
        return FactTidyPlan(found.facts, tuple(actions), _planner(planners), refused)

    async def apply(self, owned: MemoryOwner, actions: Sequence[TidyAction], planned_by: Planner) -> TidyOutcome:
        return await self._memory.apply_tidy(owned, actions, planned_by) if actions else TidyOutcome()

    async def _ask(self, owned: MemoryOwner, facts: tuple[KnownFact, ...]) -> TidyFactsResult:
        brief = TidyBrief(
            tidy_id=new_id("tidy"), user_id=owned.user_id, trace_id=owned.trace_id or new_id("tr"), facts=facts
        )
        try:
            return await self._thinking.tidy(owned.agent_id, brief)
        except Unavailable as trouble:
            _log.info("The rules tidy instead of the model: %s", trouble.message)
            return TidyFactsResult(refused=trouble.message)


def describe_action(action: TidyAction, texts: dict[int, str]) -> str:
    old = ", ".join(f"“{texts.get(fact_id, f'fact {fact_id}')}”" for fact_id in action.fact_ids)
    why = f" ({action.reason})" if action.reason else ""
    if action.kind == "delete":
        return f"delete {old}{why}"
    return f"{action.kind} {old} into “{action.fact}”{why}"


def _actions_within(actions: Sequence[TidyAction], facts: Sequence[KnownFact]) -> list[TidyAction]:
    """The actions on these facts only. A model may name others by mistake."""
    known = {fact.fact_id for fact in facts}
    return [action for action in actions if set(action.fact_ids) <= known]


def _planner(planners: set[str]) -> Planner:
    if planners == {"model", "rules"}:
        return "model and rules"
    return "rules" if planners == {"rules"} else "model"


_SECONDS = 600.0


def synthesize_tool(tidying: FactTidier, agents: AgentRegistry) -> NativeTool:
    @native_tool(
        "memory_synthesize_facts",
        "Tidy what is remembered: merge facts that say the same and drop what is outdated. It can be undone.",
        {
            "agent_id": {"type": "string", "maxLength": 100, "description": "Whose memory; by default your own"},
            "category": {"enum": list(get_args(FactCategory)), "description": "Only facts of this category"},
            "max_facts_per_category": number_parameter(2, 200, 100, "How many facts of each category to look at"),
            "preview": {"type": "boolean", "default": False, "description": "Only say what would be done"},
        },
        annotations=ToolAnnotations(read_only=False, destructive=True, idempotent=False, open_world=False),
        group="Memory",
        timeout_seconds=_SECONDS,
        scan=OWN_WORDS,
        answers=AnnabelleError,
    )
    async def synthesize(arguments: JsonObject, context: CallContext) -> ToolResult:
        owned = resolve_memory_owner(context, cast("str | None", arguments.get("agent_id")), agents)
        category = cast("FactCategory | None", arguments.get("category"))
        plan = await tidying.plan(owned, category, cast("int", arguments.get("max_facts_per_category", 100)))
        if arguments.get("preview") is True:
            return _tidy_result(plan, None)
        return _tidy_result(plan, await tidying.apply(owned, plan.actions, plan.planned_by))

    return synthesize


def _tidy_result(plan: FactTidyPlan, done: TidyOutcome | None) -> ToolResult:
    structured: JsonObject = {
        "actions": [action.model_dump(mode="json") for action in plan.actions],
        "planned_by": plan.planned_by,
        "refused": plan.refused,
        "applied": done is not None and bool(plan.actions),
        "change_id": done.change_id if done is not None else None,
        # The result contains facts, which may be somebody else's words.
        "trust": "untrusted" if any(fact.trust == "untrusted" for fact in plan.facts) else "trusted",
    }
    if not plan.actions:
        text = "There is nothing to tidy."
    else:
        what = "Would do" if done is None else "Done"
        text = "\n".join([f"{what}, planned by {_planner_name(plan)}:", *(f"- {line}" for line in plan.lines())])
    if done is not None and done.change_id is not None:
        text += f"\nThis is change {done.change_id}. {NEXT}"
    if done is not None and done.refused:
        text += "\nNot done: " + " ".join(done.refused)
    trust = "untrusted" if structured["trust"] == "untrusted" else "trusted"
    return ToolResult(text=text, structured=structured, trust=trust)


def _planner_name(plan: FactTidyPlan) -> str:
    return "the model" if plan.planned_by == "model" else plan.planned_by
