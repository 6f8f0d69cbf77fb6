"""`/memory/learn`, `/memory/tidy` and `/memory/forget`."""

from __future__ import annotations

from typing import Literal

from fastapi import Request
from pydantic import ConfigDict, Field

from annabelle.core.contract import TidyAction
from annabelle.core.errors import InvalidArguments, NotAllowed
from annabelle.core.messages import OWNER
from annabelle.core.secrets.forget_mask import fold_spelling
from annabelle.core.tools import CallContext
from annabelle.core.trace import current_trace
from annabelle.core.trust import FactCategory, Trust
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.context import HubContext
from annabelle.hub.forgetting.forget_journal import ForgetRequest
from annabelle.hub.forgetting.forget_service import ForgetReport
from annabelle.hub.forgetting.memory_client import MemoryFactMatch
from annabelle.hub.memory.fact_tidier import FactTidyPlan, Planner
from annabelle.hub.memory.memory_client import MemoryOwner, resolve_memory_owner
from annabelle.hub.security.identities import CallerIdentity

router = ApiRouter("memory")
_LEARN_SECONDS = 600.0
_MOST_ACTIONS = 500


class _MemoryBody(ApiBody):
    agent_id: str | None = Field(default=None, pattern=ID_SHAPE, description="Whose memory; by default your agent's")


class Learn(_MemoryBody):
    """From how much to learn."""

    batch_size: int = Field(default=50, ge=1, le=50, description="How many conversations to look through")


class LearntView(ApiAnswer):
    """One fact that was learnt. It was `known` when it is not new."""

    fact_id: int
    fact: str
    status: str


class LearnAnswer(ApiAnswer):
    turns: int = Field(description="Conversations that were looked through")
    facts: list[LearntView]
    refused: str | None = Field(description="Why nothing was learnt, when the model was no use")


class ActionView(ApiAnswer):
    """One change. Facts are retired, never destroyed: an undo brings them back."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"kind": "merge", "factIds": [3, 7], "fact": "Ada lives in Lisbon."}]},
    )

    kind: Literal["merge", "update", "delete"]
    fact_ids: list[int] = Field(min_length=1, max_length=200)
    fact: str | None = Field(default=None, max_length=2000, description="The text that replaces them; none for delete")
    category: FactCategory | None = None
    reason: str = Field(default="", max_length=500)

    def to_action(self) -> TidyAction:
        return TidyAction.model_validate(self.model_dump(mode="json"))


class Tidy(_MemoryBody):
    """What to tidy. With `apply` and `actions`, exactly these actions are done."""

    category: FactCategory | None = None
    max_facts_per_category: int = Field(default=100, ge=2, le=200)
    apply: bool = Field(default=False, description="Without it nothing is changed")
    actions: list[ActionView] | None = Field(
        default=None, max_length=_MOST_ACTIONS, description="As a preview gave them; by default they are planned anew"
    )


class FactView(ApiAnswer):
    """A fact that is concerned."""

    fact_id: int
    fact: str
    category: FactCategory
    trust: Trust


class TidyAnswer(ApiAnswer):
    """What would be done, or was."""

    actions: list[ActionView]
    facts: list[FactView] = Field(description="The facts that the actions concern, as they are before")
    planned_by: Planner = Field(description="Who planned it: the model, or rules where no model could")
    refused: str | None = Field(description="Why the model did not plan it, when rules did")
    applied: bool
    change_id: int | None = Field(description="The number of the change, for undoing it")
    not_done: list[str] = Field(description="Actions that did not fit any more, and why")


@router.post("/memory/learn", **document("Learn facts from what was said, now", 404, body=Learn))
async def learn_facts(request: Request, hub: TheHub, caller: Caller) -> LearnAnswer:
    """Looks through conversations that were not looked through yet. It goes on when nobody waits for it."""
    asked = await read_body(request, Learn)
    owned = _memory_owner(hub, caller, asked.agent_id)
    extraction = hub.services.memory.extraction
    learnt = await extraction.run_for_caller(owned, None, asked.batch_size, _LEARN_SECONDS)
    return LearnAnswer.from_row(learnt, facts=[LearntView.from_row(fact) for fact in learnt.facts])


@router.post("/memory/tidy", **document("Put what is remembered in order", 404, body=Tidy))
async def tidy_facts(request: Request, hub: TheHub, caller: Caller) -> TidyAnswer:
    """Facts that say the same become one, and what is outdated is retired. Without `apply` it is only proposed."""
    asked = await read_body(request, Tidy)
    # A plan must not copy a text while it is being forgotten.
    async with hub.services.memory.maintenance.working():
        return await _run_tidy(hub, asked, _memory_owner(hub, caller, asked.agent_id))


async def _run_tidy(hub: HubContext, asked: Tidy, owned: MemoryOwner) -> TidyAnswer:
    tidying = hub.services.memory.tidier
    if asked.actions is None:
        plan = await tidying.plan(owned, asked.category, asked.max_facts_per_category)
    else:
        plan = FactTidyPlan((), tuple(view.to_action() for view in asked.actions), "you")
    if not asked.apply:
        return _to_answer(plan)
    done = await tidying.apply(owned, plan.actions, plan.planned_by)
    return _to_answer(plan).model_copy(
        update={"applied": done.change_id is not None, "change_id": done.change_id, "not_done": list(done.refused)}
    )


def _memory_owner(hub: HubContext, caller: CallerIdentity, agent_id: str | None) -> MemoryOwner:
    context = CallContext(
        caller="api",
        agent_id=hub.agents.registry.config.default.agent_id,
        user_id=caller.user_id,
        trace_id=current_trace(),
    )
    return resolve_memory_owner(context, agent_id, hub.agents.registry)


def _to_answer(plan: FactTidyPlan) -> TidyAnswer:
    concerned = {fact_id for action in plan.actions for fact_id in action.fact_ids}
    return TidyAnswer.from_row(
        plan,
        actions=[ActionView.from_row(action) for action in plan.actions],
        facts=[FactView.from_row(fact) for fact in plan.facts if fact.fact_id in concerned],
        applied=False,
        change_id=None,
        not_done=[],
    )


LEAST_CHARACTERS = 3


class Forget(ApiBody):
    """What to forget: a text, or a fact by its number. With `preview` nothing is changed."""

    text: str | None = Field(default=None, max_length=20_000, description="Found whatever its case or spelling")
    fact_id: int | None = Field(default=None, ge=1, description="Forget the words of this fact and of those before it")
    with_source: bool = Field(default=False, description="With factId: also what was said where the fact came from")
    preview: bool = Field(default=True, description="Only say where it stands")


class ForgetPlace(ApiAnswer):
    """Rows, lines or files of one kind, and what becomes of them."""

    place: str = Field(examples=["conversations"])
    count: int
    fate: Literal["deleted", "masked", "rewritten"]


class ForgetFact(ApiAnswer):
    id: int
    fact: str
    current: bool


class ForgetAnswer(ApiAnswer):
    """Where the text stood. `own` are the person's own files, which are never touched."""

    preview: bool
    total: int
    places: list[ForgetPlace]
    facts: list[ForgetFact]
    own: list[str]
    near: list[ForgetFact] = Field(description="When it stands nowhere: facts that mean something like it")


@router.post("/memory/forget", **document("Forget a text for good", 404, 409, body=Forget, body_required=True))
async def forget(request: Request, hub: TheHub, caller: Caller) -> ForgetAnswer:
    """Only the owner of the home may do this: it goes through everything in it. No turn runs meanwhile; messages
    wait. What was forgotten can not be brought back, and is remembered as a keyed hash only."""
    if caller.kind != "owner" or caller.user_id != OWNER:
        raise NotAllowed("Only the owner of this home can have something forgotten.")
    asked = await read_body(request, Forget)
    _check_forget(asked)
    await hub.base.lifecycle.wait_ready()
    agent_id = hub.agents.registry.config.default.agent_id
    texts = (asked.text,) if asked.text is not None else ()
    if asked.fact_id is not None:
        memory = hub.services.memory.forgetting.memory
        texts = await memory.find_fact_texts(asked.fact_id, asked.with_source, caller.user_id, agent_id)
    pending = ForgetRequest(texts=texts, user_id=caller.user_id, agent_id=agent_id)
    if not asked.preview:
        return _to_forget_answer(await hub.services.memory.forgetting.forget(pending), preview=False)
    report = await hub.services.memory.forgetting.preview(pending)
    return _to_forget_answer(
        report, () if report.places else await hub.services.memory.forgetting.find_near_facts(pending), preview=True
    )


def _check_forget(asked: Forget) -> None:
    if (asked.text is None) == (asked.fact_id is None):
        raise InvalidArguments("Give either text or factId.", field="text")
    if asked.text is not None and len(fold_spelling(asked.text)) < LEAST_CHARACTERS:
        raise InvalidArguments(
            f"The text to forget needs at least {LEAST_CHARACTERS} characters.",
            hint="Fewer would stand everywhere.",
            field="text",
        )


def _to_forget_answer(report: ForgetReport, near: tuple[MemoryFactMatch, ...] = (), *, preview: bool) -> ForgetAnswer:
    return ForgetAnswer.from_row(
        report,
        preview=preview,
        places=[ForgetPlace.from_row(place, place=place.name) for place in report.places],
        facts=[ForgetFact.from_row(fact) for fact in report.facts],
        near=[ForgetFact.from_row(fact) for fact in near],
    )
