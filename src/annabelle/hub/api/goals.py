"""`/goals`: what Annabelle looks after for a person, made and changed by the person (THR-03)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from fastapi import Path, Query, Request, Response
from pydantic import AfterValidator, ConfigDict, Field
from sqlalchemy import Connection

from annabelle.core.errors import NotFound
from annabelle.core.messages import GOALS, OWNER, Name
from annabelle.core.text import read_line
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.hub.api.agents import ExecutionLock, load_lock
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.api.messages import UNFINISHED, NewMessage, Wait, post_message
from annabelle.hub.api.tasks import TaskView, to_task_view
from annabelle.hub.api.threads import MessageProgress, clear_thread
from annabelle.hub.context import HubContext
from annabelle.hub.goals.goal_service import DEFAULT_TOOLS, check_goal_tools, describe_check_ins
from annabelle.store import goals, ledger, skills, tasks, threads
from annabelle.store.goals import GoalState, Learning, NewGoal, StoredGoal

router = ApiRouter("goals")
_ERRORS: Final = (404, 409)
_WORD: Final = r"[^\s\x00-\x1f\x7f]"
"""At least one character that shows."""

GoalName = Annotated[str, Path(max_length=200, examples=["1"], description="Its id, number or title")]
LearningId = Annotated[str, Path(pattern=ID_SHAPE, examples=["learn_01k9zq3v7k0000000000000000"])]


def _join_words(text: str) -> str:
    return " ".join(text.split())


def _check_visible(text: str) -> str:
    if not read_line(text):
        raise ValueError("nothing in it can be seen")
    return text.strip()


Title = Annotated[str, Field(min_length=1, max_length=200, pattern=_WORD), AfterValidator(_join_words)]
Description = Annotated[str, Field(max_length=4_000)]
Instructions = Annotated[str, Field(max_length=8_000)]
LearningText = Annotated[str, Field(min_length=1, max_length=500, pattern=_WORD), AfterValidator(_check_visible)]
Clock = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$", examples=["08:30"])]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class CheckInTime(ApiBody):
    """When an agent looks at a goal by itself."""

    frequency: Literal["daily", "weekdays", "weekly"] = "daily"
    time: Clock = Field(default="09:00", description="In your time zone")
    day: Weekday = Field(default="monday", description="Of a weekly one")
    intent: str = Field(default="", max_length=1_000, description="What it is for")


class CheckInChange(CheckInTime):
    """Arrange a check-in in place of the one there is, a follow-up, or clear both."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"frequency": "weekdays", "time": "08:30"}]})

    action: Literal["schedule", "follow_up", "clear"] = "schedule"
    delay_hours: float = Field(default=24, ge=1, le=720, description="Of a follow-up")


class GoalDraft(ApiBody):
    """A goal as the person wants it. In work for it their words count as an order."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"title": "Learn the piano", "description": "Play a prelude by summer."}]}
    )

    title: Title
    description: Description = ""
    instructions: Instructions = Field(default="", description="How it is to be done")
    tools: list[str] | None = Field(default=None, max_length=50, description="By default those for searching the web")
    learnings: list[LearningText] = Field(default=[], max_length=20)
    check_in: CheckInTime | None = None


class GoalChange(ApiBody):
    """What is to be different; what is not named stays."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"description": "Play two preludes by summer."}]})

    title: Title | None = None
    description: Description | None = None
    instructions: Instructions | None = None
    tools: list[str] | None = Field(default=None, max_length=50)


class GoalOrder(ApiBody):
    """These goals first, in this order; the others follow as they were."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"goals": []}]})

    goals: list[Annotated[str, Field(pattern=ID_SHAPE)]] = Field(max_length=500)


class GoalMessage(ApiBody):
    """Something to say to a goal."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "How do we stand?"}]})

    text: str = Field(min_length=1, pattern=_WORD)
    external_id: Name | None = Field(default=None, description="Your own id of it; sending it twice is sending it once")


class LearningChange(ApiBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{"content": "I practise in the evening."}]})

    content: LearningText


class LearningView(ApiAnswer):
    """Something found out about how a goal is to be done."""

    learning_id: str
    content: str
    read_from: list[str] | None = Field(description="Foreign content that was read before it was written")
    created_at: datetime


class LearningList(ApiAnswer):
    learnings: list[LearningView]


class CheckInView(ApiAnswer):
    sort: str = Field(description="recurring, follow_up, note (after a note of yours) or heartbeat")
    intent: str
    next_due: datetime | None
    trigger: JsonObject


class CheckInList(ApiAnswer):
    check_ins: list[CheckInView]


class GoalView(ApiAnswer):
    """One goal, and how it stands."""

    goal_id: str
    number: int = Field(description="Its place in the list of all goals, those that are archived too")
    title: str
    description: str
    instructions: str
    tools: list[str] = Field(description="Beside those that every goal has")
    state: GoalState = Field(description="working while something is done for it")
    agent_id: str
    next_check_in: datetime | None
    created_at: datetime
    updated_at: datetime


class GoalDetails(GoalView):
    """A goal with all that belongs to it."""

    notes: int = Field(description="How many there are")
    learnings: list[LearningView]
    check_ins: list[CheckInView]
    tasks: list[TaskView] = Field(description="Those that have not ended")
    thread_id: str | None = Field(description="Its conversation; none before the first word")
    running: ExecutionLock | None = Field(description="The turn that has the goal to itself now")
    calls: int = Field(description="Model calls for it and its tasks")
    cost_usd: float | None


class GoalList(ApiAnswer):
    goals: list[GoalView]


@router.get("/goals", **document("Your goals", *_ERRORS))
async def list_goals(
    hub: TheHub,
    caller: Caller,
    archived: Annotated[bool, Query(description="Those that are put away, too")] = False,
    named: Annotated[str | None, Query(max_length=200, description="Only this one: its id, number or title")] = None,
) -> GoalList:
    """In your own order. A title with signs that an address cannot hold is found with `named`."""

    def read(conn: Connection) -> list[GoalView]:
        views = _list_views(conn, caller.user_id, archived or named is not None)
        wanted = None if named is None else goals.find_named_goal(conn, named, caller.user_id).id
        return [one for one in views if wanted in (None, one.goal_id)]

    return GoalList(goals=await hub.storage.database.read(read))


@router.post("/goals", status_code=201, **document("Make a goal", 409, body=GoalDraft))
async def create_goal(hub: TheHub, caller: Caller, request: Request) -> GoalDetails:
    """Made by the person, so nobody is asked. The same again is the same goal."""
    draft = await read_body(request, GoalDraft)
    check_goal_tools(draft.tools or (), _list_offered(hub, caller.user_id))
    new = NewGoal(
        user_id=caller.user_id,
        agent_id=hub.agents.registry.config.default.agent_id,
        title=_mask(hub, draft.title),
        description=_mask(hub, draft.description),
        instructions=_mask(hub, draft.instructions),
        tools=DEFAULT_TOOLS if draft.tools is None else draft.tools,
    )
    goal = await hub.services.goals.create(
        new,
        learnings=[_mask(hub, one) for one in draft.learnings],
        check_in=None if draft.check_in is None else _dump_time(hub, draft.check_in),
    )
    return await _load_details(hub, goal)


@router.post("/goals/reorder", **document("Put your goals in order", 404, body=GoalOrder))
async def reorder_goals(hub: TheHub, caller: Caller, request: Request) -> GoalList:
    wanted = await read_body(request, GoalOrder)
    await hub.services.goals.reorder(caller.user_id, wanted.goals)
    return await list_goals(hub, caller, archived=True)


@router.get("/goals/{named}", **document("One goal", *_ERRORS))
async def get_goal(named: GoalName, hub: TheHub, caller: Caller) -> GoalDetails:
    return await _load_details(hub, await hub.services.goals.find(named, caller.user_id))


@router.post("/goals/{named}/update", **document("Change a goal", *_ERRORS, body=GoalChange))
async def update_goal(named: GoalName, hub: TheHub, caller: Caller, request: Request) -> GoalDetails:
    goal = await hub.services.goals.find(named, caller.user_id)
    wanted = await read_body(request, GoalChange)
    check_goal_tools(wanted.tools or (), _list_offered(hub, caller.user_id))
    given: JsonObject = wanted.model_dump(exclude_none=True)
    changes: JsonObject = {
        name: _mask(hub, value) if isinstance(value, str) else value for name, value in given.items()
    }
    return await _load_details(hub, await hub.services.goals.change(goal.id, caller.user_id, changes))


@router.post("/goals/{named}/archive", **document("Put a goal away", *_ERRORS))
async def archive_goal(named: GoalName, hub: TheHub, caller: Caller) -> GoalDetails:
    """Nothing runs for it until it is reopened, and what runs is stopped. Its notes can still be searched."""
    goal = await hub.services.goals.find(named, caller.user_id)
    return await _load_details(hub, await hub.services.goals.archive(goal.id, caller.user_id))


@router.post("/goals/{named}/reopen", **document("Take up a goal again", *_ERRORS))
async def reopen_goal(named: GoalName, hub: TheHub, caller: Caller) -> GoalDetails:
    goal = await hub.services.goals.find(named, caller.user_id)
    return await _load_details(hub, await hub.services.goals.reopen(goal.id, caller.user_id))


@router.post("/goals/{named}/delete", **document("Delete a goal", *_ERRORS))
async def delete_goal(named: GoalName, hub: TheHub, caller: Caller) -> GoalDetails:
    """For good, with its notes, learnings, check-ins and tasks. What was said to it stays in its thread."""
    goal = await hub.services.goals.find(named, caller.user_id)
    details = await _load_details(hub, goal)
    await hub.services.goals.delete(goal.id, caller.user_id)
    return details


@router.post("/goals/{named}/reset", **document("Start the conversation of a goal afresh", *_ERRORS))
async def reset_goal(named: GoalName, hub: TheHub, caller: Caller) -> GoalDetails:
    """What was said is archived and out of its agent's mind. Its notes and learnings stay."""
    goal = await hub.services.goals.find(named, caller.user_id)
    thread = await hub.storage.database.read(lambda conn: _find_thread(conn, goal))
    if thread is not None:
        await clear_thread(thread.id, hub, caller)
    return await _load_details(hub, goal)


@router.post("/goals/{named}/check-in", **document("Arrange when to look at a goal", *_ERRORS, body=CheckInChange))
async def set_check_in(named: GoalName, hub: TheHub, caller: Caller, request: Request) -> CheckInList:
    """Again and again, or once as a follow-up."""
    goal = await hub.services.goals.find(named, caller.user_id)
    wanted = await read_body(request, CheckInChange)
    arranged = await hub.services.goals.set_check_in(goal.id, caller.user_id, _dump_time(hub, wanted))
    return CheckInList.model_validate(arranged)


@router.get("/goals/{named}/learnings", **document("What was learnt for a goal", *_ERRORS))
async def list_learnings(named: GoalName, hub: TheHub, caller: Caller) -> LearningList:
    goal = await hub.services.goals.find(named, caller.user_id)
    found = await hub.storage.database.read(lambda conn: goals.list_learnings(conn, goal.id))
    return LearningList(learnings=[_to_learning(one) for one in found])


@router.post("/goals/{named}/learnings", status_code=201, **document("Add a learning", *_ERRORS, body=LearningChange))
async def add_learning(named: GoalName, hub: TheHub, caller: Caller, request: Request) -> LearningView:
    """At most 50 for a goal. The same words again are the same learning."""
    goal = await hub.services.goals.find(named, caller.user_id)
    words = _mask(hub, (await read_body(request, LearningChange)).content)

    def write(conn: Connection) -> Learning:
        return goals.add_learning(conn, goals.get_goal(conn, goal.id, goal.user_id).id, words)

    return _to_learning(await hub.storage.database.write(write))


@router.post(
    "/goals/{named}/learnings/{learning_id}/update", **document("Reword a learning", *_ERRORS, body=LearningChange)
)
async def change_learning(
    named: GoalName, learning_id: LearningId, hub: TheHub, caller: Caller, request: Request
) -> LearningList:
    goal = await hub.services.goals.find(named, caller.user_id)
    words = _mask(hub, (await read_body(request, LearningChange)).content)
    changed = await hub.storage.database.write(lambda conn: goals.change_learning(conn, learning_id, goal.id, words))
    return await _list_after(learning_id, hub, goal, found=changed)


@router.post("/goals/{named}/learnings/{learning_id}/remove", **document("Remove a learning", *_ERRORS))
async def remove_learning(named: GoalName, learning_id: LearningId, hub: TheHub, caller: Caller) -> LearningList:
    goal = await hub.services.goals.find(named, caller.user_id)
    removed = await hub.storage.database.write(lambda conn: goals.remove_learning(conn, learning_id, goal.id))
    return await _list_after(learning_id, hub, goal, found=removed)


@router.post(
    "/goals/{named}/messages",
    status_code=202,
    response_model=MessageProgress,
    **document(
        "Say something to a goal",
        *_ERRORS,
        body=GoalMessage,
        more={200: {"model": MessageProgress, "description": "With `wait`: it is answered"}},
    ),
)
async def say_to_goal(named: GoalName, request: Request, hub: TheHub, caller: Caller, wait: Wait = 0) -> Response:
    """As `POST /message` in the chat of the goal."""
    goal = await hub.services.goals.find(named, caller.user_id)
    said = await read_body(request, GoalMessage)
    new = NewMessage(
        text=said.text, channel=GOALS, chat_id=goal.id, agent_id=goal.agent_id, external_id=said.external_id
    )
    progress = await post_message(hub, caller, new, wait)
    over = wait > 0 and progress.state not in UNFINISHED
    return Response(progress.model_dump_json(by_alias=True), 200 if over else 202, media_type="application/json")


def _mask(hub: HubContext, text: str) -> str:
    """Secrets of this home that a person pasted, as in messages."""
    return hub.base.redact.distinctive_secrets.mask(text)


def _dump_time(hub: HubContext, time: CheckInTime) -> JsonObject:
    return {**time.model_dump(), "intent": _mask(hub, time.intent)}


def _list_offered(hub: HubContext, user_id: str) -> list[ToolSpec]:
    """The tools that turns for this person may use."""
    listed = list(hub.toolbox.tools().tools)
    if user_id == OWNER:
        return listed
    policy = hub.security.users.policy(user_id, tuple(listed), in_turn=True)
    return [one for one in listed if policy.permits(one.name)]


def _list_views(conn: Connection, user_id: str, archived: bool) -> list[GoalView]:
    due: dict[str, datetime] = {}
    for one in skills.list_skills(conn, user_id):
        if one.goal_id is not None and one.enabled and one.next_due is not None:
            due[one.goal_id] = min(due.get(one.goal_id, one.next_due), one.next_due)
    known = enumerate(goals.list_goals(conn, user_id, archived=True), 1)
    return [
        GoalView.from_row(one, goal_id=one.id, number=number, next_check_in=due.get(one.id))
        for number, one in known
        if archived or one.state != "archived"
    ]


async def _load_details(hub: HubContext, goal: StoredGoal) -> GoalDetails:
    def read(conn: Connection) -> GoalDetails:
        goals.get_goal(conn, goal.id, goal.user_id)  # it may have been deleted meanwhile
        view = next(one for one in _list_views(conn, goal.user_id, archived=True) if one.goal_id == goal.id)
        thread = _find_thread(conn, goal)
        calls, cost = ledger.sum_goal_costs(conn, goal.id)
        return GoalDetails(
            **view.model_dump(),
            notes=goals.count_notes(conn, goal.id),
            learnings=[_to_learning(one) for one in goals.list_learnings(conn, goal.id)],
            check_ins=[CheckInView.model_validate(one) for one in describe_check_ins(conn, goal.id)],
            tasks=[to_task_view(conn, one) for one in tasks.list_at_work(conn, goal.id)],
            thread_id=None if thread is None else thread.id,
            running=None if thread is None else load_lock(conn, thread.id),
            calls=calls,
            cost_usd=cost,
        )

    return await hub.storage.database.read(read)


def _find_thread(conn: Connection, goal: StoredGoal) -> threads.Thread | None:
    return threads.find_open_thread(conn, channel=GOALS, chat_id=goal.id, user_id=goal.user_id, agent_id=goal.agent_id)


def _to_learning(learning: Learning) -> LearningView:
    return LearningView.from_row(learning, learning_id=learning.id)


async def _list_after(learning_id: str, hub: HubContext, goal: StoredGoal, *, found: bool) -> LearningList:
    if not found:
        raise NotFound(f"There is no learning {learning_id}.", hint="GET /goals/{named}/learnings lists them.")
    kept = await hub.storage.database.read(lambda conn: goals.list_learnings(conn, goal.id))
    return LearningList(learnings=[_to_learning(one) for one in kept])
