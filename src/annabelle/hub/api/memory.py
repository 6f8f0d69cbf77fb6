"""`POST /memory/learn` and `POST /memory/tidy`: learn from what was said now, and put facts in order."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from annabelle.core.contract import TidyAction
from annabelle.core.ids import new_id
from annabelle.core.memory import FactCategory, Trust
from annabelle.core.tools import CallContext
from annabelle.core.trace import current_trace
from annabelle.hub.api.documented import ID_SHAPE, Answer, Caller, TheHub, body_of, failures, read_body
from annabelle.hub.flows.learn_facts import ToLearn
from annabelle.hub.memory.memory_tools import Owned
from annabelle.hub.memory.owners import whose
from annabelle.hub.memory.tidying import Plan, Planner
from annabelle.hub.security.identities import Identity
from annabelle.hub.services import Hub

router = APIRouter(tags=["memory"])
_LEARN_SECONDS = 600.0
_MOST_ACTIONS = 500


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)

    agent_id: str | None = Field(default=None, pattern=ID_SHAPE, description="Whose memory; by default your agent's")


class Learn(_Asked):
    """From how much to learn."""

    batch_size: int = Field(default=50, ge=1, le=50, description="How many conversations to look through")


class LearntView(Answer):
    """One fact that was learnt. It was `known` when it is not new."""

    fact_id: int
    fact: str
    status: str


class LearnAnswer(Answer):
    turns: int = Field(description="Conversations that were looked through")
    facts: list[LearntView]
    refused: str | None = Field(description="Why nothing was learnt, when the model was no use")


class ActionView(Answer):
    """One change. Facts are retired, never destroyed: an undo brings them back."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="forbid",
        json_schema_extra={"examples": [{"kind": "merge", "factIds": [3, 7], "fact": "Ada lives in Lisbon."}]},
    )

    kind: Literal["merge", "update", "delete"]
    fact_ids: list[int] = Field(min_length=1, max_length=200)
    fact: str | None = Field(default=None, max_length=2000, description="The text that replaces them; none for delete")
    category: FactCategory | None = None
    reason: str = Field(default="", max_length=500)

    @classmethod
    def of(cls, action: TidyAction) -> ActionView:
        return cls.model_validate(action.model_dump(mode="json"))

    def action(self) -> TidyAction:
        return TidyAction.model_validate(self.model_dump(mode="json"))


class Tidy(_Asked):
    """What to tidy. With `apply` and `actions`, exactly these actions are done."""

    category: FactCategory | None = None
    max_facts_per_category: int = Field(default=100, ge=2, le=200)
    apply: bool = Field(default=False, description="Without it nothing is changed")
    actions: list[ActionView] | None = Field(
        default=None, max_length=_MOST_ACTIONS, description="As a preview gave them; by default they are planned anew"
    )


class FactView(Answer):
    """A fact that is concerned."""

    fact_id: int
    fact: str
    category: FactCategory
    trust: Trust


class TidyAnswer(Answer):
    """What would be done, or was."""

    actions: list[ActionView]
    facts: list[FactView] = Field(description="The facts that the actions concern, as they are before")
    planned_by: Planner = Field(description="Who planned it: the model, or rules where no model could")
    refused: str | None = Field(description="Why the model did not plan it, when rules did")
    applied: bool
    change_id: int | None = Field(description="The number of the change, for undoing it")
    not_done: list[str] = Field(description="Actions that did not fit any more, and why")


@router.post(
    "/memory/learn",
    operation_id="learn_facts",
    responses=failures(404),
    openapi_extra=body_of(Learn, required=False),
    summary="Learn facts from what was said, now",
)
async def learn_facts(request: Request, hub: TheHub, caller: Caller) -> LearnAnswer:
    """Looks through conversations that were not looked through yet. It goes on when nobody waits for it."""
    asked = await read_body(request, Learn)
    owned = _owned(hub, caller, asked.agent_id)
    wanted = ToLearn(
        learn_id=f"learn:{new_id('call')}",
        user_id=owned.user_id,
        agent_id=owned.agent_id,
        trace_id=owned.trace_id or new_id("tr"),
        limit=asked.batch_size,
        tries=1,
    )
    await hub.memory.learn.begin(wanted)
    learnt = await hub.memory.learn.result(wanted.learn_id, _LEARN_SECONDS)
    facts = [LearntView(fact_id=fact.fact_id, fact=fact.fact, status=fact.status) for fact in learnt.facts]
    return LearnAnswer(turns=learnt.turns, facts=facts, refused=learnt.refused)


@router.post(
    "/memory/tidy",
    operation_id="tidy_facts",
    responses=failures(404),
    openapi_extra=body_of(Tidy, required=False),
    summary="Put what is remembered in order",
)
async def tidy_facts(request: Request, hub: TheHub, caller: Caller) -> TidyAnswer:
    """Facts that say the same become one, and what is outdated is retired. Without `apply` it is only proposed."""
    asked = await read_body(request, Tidy)
    # While something is being forgotten, no plan may carry its words on.
    async with hub.memory.quiet.working():
        return await _tidied(hub, asked, _owned(hub, caller, asked.agent_id))


async def _tidied(hub: Hub, asked: Tidy, owned: Owned) -> TidyAnswer:
    tidying = hub.memory.tidying
    if asked.actions is None:
        plan = await tidying.plan(owned, asked.category, asked.max_facts_per_category)
    else:
        plan = Plan((), tuple(view.action() for view in asked.actions), "you")
    if not asked.apply:
        return _shown(plan)
    done = await tidying.apply(owned, plan.actions, plan.planned_by)
    return _shown(plan).model_copy(
        update={"applied": done.change_id is not None, "change_id": done.change_id, "not_done": list(done.refused)}
    )


def _owned(hub: Hub, caller: Identity, agent_id: str | None) -> Owned:
    context = CallContext(
        caller="api",
        agent_id=hub.agents.config.default.agent_id,
        user_id=caller.user_id,
        trace_id=current_trace(),
    )
    return whose(context, agent_id, hub.agents)


def _shown(plan: Plan) -> TidyAnswer:
    concerned = {fact_id for action in plan.actions for fact_id in action.fact_ids}
    return TidyAnswer(
        actions=[ActionView.of(action) for action in plan.actions],
        facts=[
            FactView(fact_id=fact.fact_id, fact=fact.fact, category=fact.category, trust=fact.trust)
            for fact in plan.facts
            if fact.fact_id in concerned
        ],
        planned_by=plan.planned_by,
        refused=plan.refused,
        applied=False,
        change_id=None,
        not_done=[],
    )
