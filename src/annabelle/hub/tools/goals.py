"""Tools of goals: `create_goal` for every chat, the others for the agents of goals, tasks and people (AGE-05)."""

from __future__ import annotations

from typing import cast

from sqlalchemy import Connection

from annabelle.agents import find_kind, is_chat
from annabelle.agents.task import start_task
from annabelle.core.errors import AnnabelleError, NotAllowed, RetryByModel
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import TurnEvent
from annabelle.core.result_text import for_model, make_result
from annabelle.core.text import read_line
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trust import Trust
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.conversations.event_log import EventLog, WriteResult
from annabelle.hub.goals.feed_repeats import COMPARED, FeedRepeats, HandedItem
from annabelle.hub.goals.goal_service import DEFAULT_TOOLS, GoalService, check_goal_tools
from annabelle.hub.goals.markdown_notes import SEARCH_MARKDOWN
from annabelle.hub.tasks.task_runner import make_task_id
from annabelle.store import feed, goals, messages, tasks, threads, tool_calls
from annabelle.store.feed import NewFeedItem
from annabelle.store.goals import NewGoal, NewNote, StoredGoal
from annabelle.store.message_state import load_root_message
from annabelle.store.messages import StoredMessage
from annabelle.store.tasks import NewTask, StoredTask
from annabelle.toolbox.catalogue import OWN_WORDS, READS, WRITES_ONCE, NativeTool, native_tool, text_parameter
from annabelle.toolbox.facade import Toolbox

_GROUP = "Goals"
_TITLE = 200
_NOTE = 20_000
_FOUND = 10
_SHOWN_CHARS = 2_000
_MOST_ITEMS = 5
_TOOLS: JsonObject = {"type": "array", "maxItems": 50, "items": text_parameter(200)}
_WHICH_GOAL = text_parameter(60, "Of which goal, if you look after several")
_CHECK_IN: JsonObject = {
    "frequency": {"type": "string", "enum": ["daily", "weekdays", "weekly"]},
    "time": text_parameter(5, "As 08:30, in the user's time zone"),
    "day": text_parameter(10, "Of a weekly one: monday, …"),
    "intent": text_parameter(1_000, "What it is for"),
}


def goal_tools(service: GoalService, events: EventLog, toolbox: Toolbox, agents: AgentRegistry) -> list[NativeTool]:
    return [
        _create_goal(service, toolbox, agents),
        _create_task(service),
        _create_note(service),
        _search_notes(service, agents),
        _manage_learning(service),
        _manage_check_in(service),
        _emit_progress(events),
        _generate_feed(service),
    ]


def _find_goal(conn: Connection, context: CallContext, named: object = None) -> StoredGoal | None:
    """The goal of the agent that calls; one that has none of its own may name one of its person's."""
    own = find_kind(context.channel or "").find_goal(conn, context.chat_id or "")
    if own is not None or named is None:
        return own
    return goals.get_goal(conn, str(named), context.user_id)


def _require_goal(conn: Connection, context: CallContext, named: object = None) -> StoredGoal:
    goal = _find_goal(conn, context, named)
    if goal is None:
        raise RetryByModel("It is not said for which goal.", hint="Give goal_id.")
    return goal


def _read_from(conn: Connection, context: CallContext) -> list[str] | None:
    """Foreign content that was read in the conversation before this call."""
    return (context.message_id and tool_calls.list_untrusted_tools(conn, context.message_id)) or None


def _find_root(conn: Connection, context: CallContext) -> StoredMessage | None:
    """The message that began what calls, also where it goes on after an answer of the person."""
    if context.message_id is None:
        return None
    return load_root_message(conn, messages.load_message(conn, context.message_id))


def _create_goal(service: GoalService, toolbox: Toolbox, agents: AgentRegistry) -> NativeTool:
    @native_tool(
        "create_goal",
        "Set up a goal that is looked after for weeks: research, notes, check-ins. The user confirms it.",
        {
            "title": text_parameter(_TITLE, "A few words"),
            "description": text_parameter(4_000, "What is to be reached, by when, and where the user stands"),
            "instructions": text_parameter(8_000, "How the user wants it done"),
            "learnings": {"type": "array", "maxItems": 20, "items": text_parameter(500)},
            "tools": {**_TOOLS, "description": "Tools it needs; by default those for searching the web"},
            "check_in": {"type": "object", "properties": _CHECK_IN, "description": "When to come back by itself"},
        },
        required=("title", "description"),
        annotations=WRITES_ONCE,
        group=_GROUP,
        scan=OWN_WORDS,
        answers=AnnabelleError,
    )
    async def create_goal(arguments: JsonObject, context: CallContext) -> ToolResult:
        if context.agent_id is None:
            raise NotAllowed("A goal is set up in a conversation.", hint="annabelle goals new")
        named = cast("list[str]", arguments.get("tools") or [])
        check_goal_tools(named, toolbox.tools(agents.policy_of(context)).tools)
        new = NewGoal(
            user_id=context.user_id,
            agent_id=context.agent_id,
            title=str(arguments["title"]),
            description=str(arguments["description"]),
            instructions=str(arguments.get("instructions") or ""),
            tools=named or DEFAULT_TOOLS,
            thread_id=context.thread_id if is_chat(context.channel or "") else None,
        )
        foreign = await service.database.read(lambda conn: _read_from(conn, context))
        goal = await service.create(
            new,
            learnings=[str(one) for one in cast("list[object]", arguments.get("learnings") or [])],
            check_in=cast("JsonObject | None", arguments.get("check_in")),
            read_from=foreign,
        )

        def render() -> str:
            talk = for_model("; the user talks to it with /goals or annabelle goals chat")
            return f"The goal “{goal.title}” is set up{for_model(f' ({goal.id})')}{talk}."

        return make_result(render, {"goal_id": goal.id, "title": goal.title})

    return create_goal


def _create_task(service: GoalService) -> NativeTool:
    """The same call id is the same task."""

    @native_tool(
        "create_task",
        "Give research to a task in the background. It knows the goal and what you write here, nothing else, and "
        "writes a note when it is done.",
        {
            "title": text_parameter(_TITLE),
            "instructions": text_parameter(8_000, "All it needs to know"),
            "tools": {**_TOOLS, "description": "Only these of your tools; by default all it may have"},
        },
        required=("title", "instructions"),
        annotations=WRITES_ONCE,
        group=_GROUP,
        scan=OWN_WORDS,
        audience="named",
        answers=AnnabelleError,
    )
    async def create_task(arguments: JsonObject, context: CallContext) -> ToolResult:
        def write(conn: Connection) -> tuple[StoredTask, str]:
            parent = find_kind(context.channel or "")
            usable, goal = parent.list_child_tools(conn, context), _find_goal(conn, context)
            if usable is None:
                raise NotAllowed("This agent gives no tasks.")
            wanted = cast("list[str]", arguments.get("tools") or list(usable))
            if beyond := [one for one in wanted if one not in usable]:
                raise RetryByModel(
                    f"A task may not have {', '.join(beyond)}.", hint=f"It may have {', '.join(usable)}."
                )
            root = _find_root(conn, context)
            origin = None if root is None else root.metadata.get("type")
            new = NewTask(
                id=make_task_id(context),
                kind="goal",
                user_id=context.user_id,
                name=read_line(str(arguments["title"])) or "Task",
                request={"instructions": arguments["instructions"], "tools": wanted, "origin_type": origin},
                agent_id=context.agent_id,
                goal_id=None if goal is None else goal.id,
            )
            return start_task(conn, new, _read_from(conn, context) or [], service.clock.now())

        task, thread_id = await service.database.write(write)
        failpoint("hub.after_task")
        await service.thread_queue.start_next(thread_id)

        def render() -> str:
            return f"The task “{task.name}” is under way{for_model(f' ({task.id})')}. It writes a note when it is done."

        return make_result(render, {"task_id": task.id, "state": task.state})

    return create_task


def _create_note(service: GoalService) -> NativeTool:
    """The same call id is the same note."""

    @native_tool(
        "create_note",
        "Keep something as a note of the goal, for you and the user.",
        {
            "title": text_parameter(_TITLE),
            "content": text_parameter(_NOTE, "In Markdown"),
            "goal_id": _WHICH_GOAL,
        },
        required=("title", "content"),
        annotations=WRITES_ONCE,
        group=_GROUP,
        scan=OWN_WORDS,
        audience="named",
        answers=AnnabelleError,
    )
    async def create_note(arguments: JsonObject, context: CallContext) -> ToolResult:
        note_id = make_task_id(context).replace("task_", "note_")

        def write(conn: Connection) -> str:
            goal = _find_goal(conn, context, arguments.get("goal_id"))
            note = NewNote(
                user_id=context.user_id,
                goal_id=None if goal is None else goal.id,
                title=read_line(str(arguments["title"])) or "Note",
                content=str(arguments["content"]),
                written_by="agent",
                read_from=_read_from(conn, context),
            )
            return goals.add_note(conn, note, note_id, service.clock.now()).id

        kept = await service.database.write(write)
        return ToolResult(text=f"The note “{arguments['title']}” is kept.", structured={"note_id": kept})

    return create_note


def _search_notes(service: GoalService, agents: AgentRegistry) -> NativeTool:
    @native_tool(
        "search_notes",
        "Search the notes of the goal, and the user's Markdown notes; without words, the newest of the goal.",
        {"query": {"type": "string", "maxLength": 300}, "goal_id": _WHICH_GOAL},
        annotations=READS,
        group=_GROUP,
        audience="named",
        answers=AnnabelleError,
    )
    async def search_notes(arguments: JsonObject, context: CallContext) -> ToolResult:
        words = str(arguments.get("query") or "")
        goal = await service.database.read(lambda conn: _find_goal(conn, context, arguments.get("goal_id")))
        policy = agents.policy_of(context)
        markdown = bool(words) and (policy is None or policy.permits(SEARCH_MARKDOWN))
        goal_id = None if goal is None else goal.id
        found = await service.notes.search(context.user_id, words, goal_id, limit=_FOUND, markdown=markdown)
        foreign = bool(found.markdown) or any(one.read_from for one in found.notes)
        trust: Trust = "untrusted" if foreign else "trusted"
        notes = [
            f"{one.created_at.astimezone(service.time_zone):%Y-%m-%d} {one.title}\n{one.content[:_SHOWN_CHARS]}"
            for one in found.notes
        ]
        pages = ["\n".join((f"{one.path}: {one.title}", *one.lines)) for one in found.markdown]
        shown: JsonObject = {
            "notes": [{"note_id": one.id, "title": one.title} for one in found.notes],
            "markdown": [one.path for one in found.markdown],
        }
        text = "\n\n".join([*notes, *pages, *([found.trouble] if found.trouble else [])])
        return ToolResult(text=text or "There are no such notes.", structured=shown, trust=trust)

    return search_notes


def _manage_learning(service: GoalService) -> NativeTool:
    @native_tool(
        "manage_learning",
        "Save, change or remove a learning: what you found out about how the user wants this goal done. At most 50.",
        {
            "action": {"type": "string", "enum": ["save", "change", "remove"]},
            "content": text_parameter(500),
            "learning_id": text_parameter(60, "Of the one to change or remove, as in the working material"),
            "goal_id": _WHICH_GOAL,
        },
        required=("action",),
        annotations=WRITES_ONCE,
        group=_GROUP,
        scan=OWN_WORDS,
        audience="named",
        answers=AnnabelleError,
    )
    async def manage_learning(arguments: JsonObject, context: CallContext) -> ToolResult:
        action, content = str(arguments["action"]), str(arguments.get("content") or "").strip()
        content = content if read_line(content) else ""
        learning_id = str(arguments.get("learning_id") or "")
        if action != "remove" and not content:
            raise RetryByModel("content is missing.")

        def write(conn: Connection) -> str:
            goal = _require_goal(conn, context, arguments.get("goal_id"))
            foreign = _read_from(conn, context)
            if action == "save":
                return goals.add_learning(conn, goal.id, content, foreign).id
            done = (
                goals.remove_learning(conn, learning_id, goal.id)
                if action == "remove"
                else goals.change_learning(conn, learning_id, goal.id, content, foreign)
            )
            if not done:
                raise RetryByModel(
                    f"There is no learning {learning_id}.", hint="Their ids are in the working material."
                )
            return learning_id

        kept = await service.database.write(write)
        words = {"save": "is kept", "change": "was changed", "remove": "was removed"}[action]
        return ToolResult(text=f"The learning {words}.", structured={"learning_id": kept})

    return manage_learning


def _manage_check_in(service: GoalService) -> NativeTool:
    @native_tool(
        "manage_check_in",
        "Arrange when to look at the goal by yourself: schedule (again and again), follow_up (once), or clear both.",
        {
            "action": {"type": "string", "enum": ["schedule", "follow_up", "clear"]},
            **_CHECK_IN,
            "delay_hours": {"type": "number", "description": "Of a follow-up: 1 to 720"},
        },
        required=("action",),
        annotations=WRITES_ONCE,
        group=_GROUP,
        scan=OWN_WORDS,
        audience="named",
        answers=AnnabelleError,
    )
    async def manage_check_in(arguments: JsonObject, context: CallContext) -> ToolResult:
        def read(conn: Connection) -> tuple[StoredGoal, list[str] | None]:
            return _require_goal(conn, context), _read_from(conn, context)

        goal, foreign = await service.database.read(read)
        arranged = await service.set_check_in(goal.id, goal.user_id, arguments, foreign)
        words = "The check-ins are cleared." if arguments["action"] == "clear" else "The check-in is arranged."
        return ToolResult(text=words, structured=arranged)

    return manage_check_in


def _emit_progress(events: EventLog) -> NativeTool:
    @native_tool(
        "emit_progress",
        "Say in a few words what you are doing, for the user who looks in.",
        {"message": text_parameter(300)},
        required=("message",),
        annotations=WRITES_ONCE,
        group=_GROUP,
        scan=OWN_WORDS,
        audience="named",
        answers=AnnabelleError,
    )
    async def emit_progress(arguments: JsonObject, context: CallContext) -> ToolResult:
        text = str(arguments["message"])

        def write(conn: Connection) -> WriteResult[None]:
            tasks.change_task(conn, context.chat_id or "", {"result": {"progress": text}})  # if it is one of a task
            event = TurnEvent(
                message_id=context.message_id or "",
                key=f"progress:{context.call_id}",
                type="notice",
                data={"text": text, "progress": text},
            )
            return WriteResult(None, context.user_id, threads.append_events(conn, context.thread_id or "", [event]))

        await events.transact(write)
        return ToolResult(text="Shown.")

    return emit_progress


def _generate_feed(service: GoalService) -> NativeTool:
    @native_tool(
        "generate_feed",
        "Hand over what the feed shows now. What it had before, also in other words, is left out.",
        {
            "items": {
                "type": "array",
                "minItems": 1,
                "maxItems": _MOST_ITEMS,
                "items": {
                    "type": "object",
                    "properties": {
                        "kind": {"type": "string", "enum": ["discovery", "reflection"]},
                        "title": text_parameter(_TITLE),
                        "content": text_parameter(2_000),
                        "goal_id": text_parameter(60),
                    },
                    "required": ["kind", "title", "content"],
                },
            }
        },
        required=("items",),
        annotations=WRITES_ONCE,
        group=_GROUP,
        scan=OWN_WORDS,
        audience="named",
        answers=AnnabelleError,
    )
    async def generate_feed(arguments: JsonObject, context: CallContext) -> ToolResult:
        given = cast("list[dict[str, str]]", arguments["items"])

        def write(conn: Connection) -> list[HandedItem]:
            own = {one.id for one in goals.list_goals(conn, context.user_id)}
            foreign, root = _read_from(conn, context), _find_root(conn, context)
            repeats = FeedRepeats(feed.list_feed(conn, context.user_id, COMPARED))
            handed: list[HandedItem] = []
            for one in given:
                item = NewFeedItem(
                    user_id=context.user_id,
                    kind="discovery" if one["kind"] == "discovery" else "reflection",
                    title=one["title"],
                    content=one["content"],
                    goal_id=one.get("goal_id") if one.get("goal_id") in own else None,
                    read_from=foreign,
                    message_id=None if root is None else root.id,
                )
                earlier = repeats.find(item)
                kept = None if earlier is not None else feed.add_feed_item(conn, item)
                if kept is not None:
                    repeats.add(kept)
                handed.append(HandedItem(item.title, shown=kept is not None, earlier=earlier))
            return handed

        handed = await service.database.write(write)
        left_out = [one for one in handed if not one.shown]
        new = len(handed) - len(left_out)
        lines = [f"{new} shown.", *(one.explain_left_out(service.time_zone) for one in left_out)]
        if left_out:
            lines.append("If there is something else that is new, hand that over.")
        trust: Trust = "untrusted" if any(one.earlier and one.earlier.read_from for one in left_out) else "trusted"
        about: JsonObject = {"shown": new, "repeated": len(left_out), "left_out": [one.title for one in left_out]}
        return ToolResult(text="\n".join(lines), structured=about, trust=trust)

    return generate_feed
