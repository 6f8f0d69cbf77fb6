"""`/approvals`: the questions agents ask before a call, and the answers (POL-03)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Path, Query, Request
from pydantic import ConfigDict, Field

from annabelle.core.tools import JsonObject
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.approvals.approval_answer import ApprovalAnswer as PersonsAnswer
from annabelle.hub.approvals.questions import render_questions
from annabelle.hub.context import HubContext
from annabelle.store.approvals import Approval, ApprovalState
from annabelle.store.messages import list_texts

router = ApiRouter("approvals")

ApprovalId = Annotated[str, Path(pattern=ID_SHAPE, examples=["apr_01k9zq3v7k0000000000000000"])]


class AllowanceView(ApiAnswer):
    """The rule that `always` would make: which calls it lets pass from then on."""

    words: str
    match: JsonObject


class ApprovalView(ApiAnswer):
    """One question. `arguments` is the exact call; a secret in it is masked, and stays masked."""

    id: str
    state: ApprovalState = Field(description="used: approved, and the call was made with it")
    tool: str
    arguments: JsonObject
    edited: JsonObject | None = Field(description="The arguments as you changed them")
    reasons: list[str] = Field(description="Why it is asked")
    order: str | None = Field(default=None, description="Your words that the turn follows, as far as there are any")
    text: str = Field(description="The question as it is shown in the chat, with nothing unseen in it")
    agent_id: str
    thread_id: str
    message_id: str = Field(description="The message whose turn asked, or that told of a task's question")
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    note: str | None
    continued_by: str | None = Field(description="The message that carries the turn on")
    always: AllowanceView | None = Field(description="What `always` would allow; none where no rule is narrow enough")


class ApprovalList(ApiAnswer):
    approvals: list[ApprovalView]


class NewAnswer(ApiBody):
    """Your answer to a question. A yes is for this one call, as it stands or with the arguments you give."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"verdict": "approve"}, {"verdict": "deny", "note": "Not today."}]}
    )

    verdict: Literal["approve", "deny"]
    arguments: JsonObject | None = Field(default=None, description="Make the call with these arguments instead")
    note: str = Field(default="", max_length=2000, description="A word to the agent")
    always: bool = Field(default=False, description="Make the rule that `always` of the question shows, too")


class AnsweredView(ApiAnswer):
    approval: ApprovalView
    message_id: str | None = Field(
        description="The message that carries the turn on; none while another question of the turn waits, or of a task"
    )
    task_id: str | None = Field(default=None, description="The task in the background that goes on")
    rule_id: str | None = Field(default=None, description="The rule that was made")


@router.get("/approvals", **document("What you are asked"))
async def list_approvals(
    hub: TheHub,
    caller: Caller,
    state: Annotated[ApprovalState | None, Query(description="Only those in this state")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="At most so many")] = 100,
) -> ApprovalList:
    """Your own questions, newest first."""
    found = await hub.services.approvals.listing(caller.user_id, state, limit)
    return ApprovalList(approvals=await _to_views(hub, found))


@router.get("/approvals/{approval_id}", **document("One question", 404))
async def get_approval(approval_id: ApprovalId, hub: TheHub, caller: Caller) -> ApprovalView:
    """The question with all of its arguments, and what became of it."""
    (found,) = await _to_views(hub, [await hub.services.approvals.get(approval_id, caller.user_id)])
    return found


@router.post("/approvals/{approval_id}", **document("Say yes or no", 404, 409, body=NewAnswer))
async def answer_approval(approval_id: ApprovalId, request: Request, hub: TheHub, caller: Caller) -> AnsweredView:
    """The answer is on disk when this answers, and counts once. The turn goes on as soon as nothing it asked waits."""
    new = await read_body(request, NewAnswer)
    answer = PersonsAnswer(new.verdict == "approve", new.arguments, new.note, new.always)
    decided = await hub.services.approvals.decide(approval_id, caller.user_id, answer)
    going_on = decided.going_on.id if decided.going_on is not None else None
    return AnsweredView(
        approval=_view(hub, decided.approval), message_id=going_on, task_id=decided.task_id, rule_id=decided.rule_id
    )


async def _to_views(hub: HubContext, found: Sequence[Approval]) -> list[ApprovalView]:
    """With the words of the message that each turn goes back to."""
    roots, user_id = list({one.root_id for one in found}), found[0].user_id if found else ""
    texts = await hub.storage.database.read(lambda conn: list_texts(conn, roots, user_id))
    orders = {root: hub.base.redact(text) for root, text in texts.items()}
    return [_view(hub, one, orders.get(one.root_id)) for one in found]


def _view(hub: HubContext, approval: Approval, order: str | None = None) -> ApprovalView:
    allowance = hub.services.approvals.allowance(approval) if approval.state == "pending" else None
    return ApprovalView.from_row(
        approval,
        text=render_questions([approval]),
        order=order,
        continued_by=approval.resumed_by,
        always=None if allowance is None else AllowanceView.from_row(allowance),
    )
