"""A task of a goal: research in the background that ends with a note on the goal (AGE-03, AGE-13)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, cast

from sqlalchemy import Connection

from annabelle.agents.check_in import find_report_thread
from annabelle.agents.goal import list_task_tools, rest_if_done
from annabelle.agents.kind import MAX_STEPS, AgentKind, EndedTurn, read_prompt
from annabelle.agents.work import Work, queue_work
from annabelle.core.contract import TurnLimits
from annabelle.core.errors import (
    UNRETRYABLE,
    AgentPaused,
    Conflict,
    ErrorBody,
    NotFound,
    TooManyRequests,
    TurnCancelled,
)
from annabelle.core.messages import GOALS, USER_AGENT, StoredEvent, TurnEvent
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.policy.provenance import trust_after
from annabelle.store import goals, messages, tasks, threads, tool_calls
from annabelle.store.goals import NewNote, StoredGoal
from annabelle.store.message_state import add_facts, root_message_id
from annabelle.store.messages import StoredMessage
from annabelle.store.outbox import post
from annabelle.store.tasks import NewTask, StoredTask
from annabelle.store.threads import Thread

TASKS: Final = "task"
AT_ONCE: Final = 5
"""Tasks of one goal, or of a person's own agent, that have not ended."""
SECONDS: Final = 600.0
_TOKEN_BUDGET: Final = 60_000
_SYSTEM_TOOLS: Final = ("create_note", "emit_progress", "update_workspace")
_FIRST_PAUSE: Final = timedelta(minutes=5)
_MOST_FAILURES: Final = 5
_MOST_DOUBLINGS: Final = 4
LONGEST_PAUSE: Final = _FIRST_PAUSE * 2**_MOST_DOUBLINGS
"""A task that is tried again by itself waits no longer."""
_SILENT: Final = ErrorBody(code="internal_error", message="It ended without saying why.")


class TaskKind(AgentKind):
    agent_type = "task"
    channel: str | None = TASKS
    conversational = False
    accepts_messages = False

    def find_goal(self, conn: Connection, chat_id: str) -> StoredGoal | None:
        task = _find_task(conn, chat_id)
        return None if task is None or task.goal_id is None else goals.find_goal(conn, task.goal_id)

    def load_context(self, conn: Connection, message: StoredMessage) -> JsonObject:
        return {"allowed_tools": _list_tools(conn, message.chat_id)}

    def load_terms(
        self, conn: Connection, message: StoredMessage, limits: TurnLimits, settings: Settings
    ) -> JsonObject:
        tools = _list_tools(conn, message.chat_id)
        own = {"max_steps": MAX_STEPS, "wall_clock_seconds": SECONDS}
        terms: JsonObject = {
            "required_tools": tools,
            "conversational": self.conversational,
            "limits": limits.model_copy(update=own),
            "token_budget": _TOKEN_BUDGET,
        }
        task, goal = _find_task(conn, message.chat_id), self.find_goal(conn, message.chat_id)
        if task is None:
            return terms
        title, description = (goal.title, goal.words) if goal is not None else ("(none)", "(none)")
        terms["instructions"] = read_prompt("task").format(title=title, description=description)
        return terms if message.source == "decision" else terms | {"text": str(task.request["instructions"])}

    def end_turn(self, conn: Connection, ended: EndedTurn) -> list[StoredEvent]:
        task = _find_current(conn, ended.message)
        if task is None:
            return []
        if ended.parked is not None and ended.parked.waits:
            ids = [one.id for one in ended.parked.questions]
            if not ids:
                return []  # answered meanwhile, so it goes on
            tasks.change_task(conn, task.id, {"state": "paused", "next_try_at": None})
            text = f"The task “{task.name}” needs your yes to go on.\n\n{ended.parked.text}"
            return _tell(conn, task, text, f"asks:{ids}", {"approvals": ids})
        if ended.parked is not None:
            return cancel_task(conn, task, ended.parked.text, ended.at)
        if not ended.result.success:
            return _fail(conn, task, ended)
        return _complete(conn, task, ended)

    def resume_turn(self, conn: Connection, message: StoredMessage) -> None:
        if (task := _find_current(conn, message)) is not None:
            tasks.change_task(conn, task.id, {"state": "active"})

    def drop_turn(self, conn: Connection, message: StoredMessage, why: str, at: datetime) -> list[StoredEvent] | None:
        task = _find_current(conn, message)
        return [] if task is None else cancel_task(conn, task, why, at)


def start_task(conn: Connection, new: NewTask, read_from: list[str], at: datetime) -> tuple[StoredTask, str]:
    """Store a task and queue its turn, in one transaction; the same id is the same task. Returns its thread, too."""
    _check_room(conn, new)
    request = new.request | {"read_from": read_from}
    task = tasks.create_task(
        conn,
        NewTask(
            id=new.id,
            kind="goal",
            user_id=new.user_id,
            name=new.name,
            request=request,
            agent_id=new.agent_id,
            goal_id=new.goal_id,
            state="active",
        ),
        at=at,
    )
    if task.goal_id is not None:
        goals.set_goal_state(conn, task.goal_id, "working")
    return task, queue_attempt(conn, task)


def queue_attempt(conn: Connection, task: StoredTask) -> str:
    """Queue the next attempt of an active task, once; returns its thread."""
    goal = None if task.goal_id is None else goals.find_goal(conn, task.goal_id)
    work = Work(
        id=_attempt_id(task),
        channel=TASKS,
        chat_id=task.id,
        user_id=task.user_id,
        agent_id=task.agent_id or "",
        text="" if goal is None else goal.words,
        about={"task_id": task.id, "origin_type": task.request.get("origin_type")},
        read_from=cast("list[str]", task.request["read_from"]),
    )
    return queue_work(conn, work)


def begin_again(conn: Connection, task: StoredTask, at: datetime) -> str:
    """Try a task again for its person, who may have done so long after it was made; returns its thread."""
    _check_room(conn, task)
    return retry_task(conn, task, at)


def retry_task(conn: Connection, task: StoredTask, begun_at: datetime | None = None) -> str:
    """Try a task again that is paused or has ended; returns its thread. `begun_at` if its time begins again."""
    request = {name: one for name, one in task.request.items() if name not in ("waits_for_agent", "spared_now")}
    if begun_at is not None:
        request["begun_at"] = begun_at.isoformat()
    again: JsonObject = {"state": "active", "next_try_at": None, "finished_at": None, "result": None}
    if task.request.get("spared_now"):
        request["spared"] = task.attempt - task.failures + 1
    else:
        again["failures"] = task.failures + 1
    again["request"] = request
    tasks.reopen_task(conn, task.id, again)
    if task.goal_id is not None:
        goals.set_goal_state(conn, task.goal_id, "working")
    return queue_attempt(conn, tasks.load_task(conn, task.id))


def wait_for_agent(conn: Connection, task: StoredTask, why: str, at: datetime, *, spared: bool = False) -> datetime:
    """Leave a task paused while its agent is; returns when to look again. `spared`: its attempt was no try."""
    tried = task.attempt - task.failures if spared else 0
    again = at + _FIRST_PAUSE * 2 ** min(tried, _MOST_DOUBLINGS)
    request = task.request | {"waits_for_agent": True} | ({"spared_now": True} if spared else {})
    changes: JsonObject = {"state": "paused", "next_try_at": again, "result": {"text": why}, "request": request}
    tasks.change_task(conn, task.id, changes)
    return again


def cancel_task(conn: Connection, task: StoredTask, why: str, at: datetime, *, told: bool = True) -> list[StoredEvent]:
    """End a task without a result. Who follows its thread hears of it in any case, the person only if `told`."""
    changes: JsonObject = {"state": "cancelled", "next_try_at": None, "result": {"text": why}, "finished_at": at}
    if not tasks.change_task(conn, task.id, changes):
        return []
    _rest(conn, task)
    followers = _note_cancelled(conn, task)
    if not told:
        return followers
    return followers + _tell(conn, task, f"The task “{task.name}” was not finished. {why}", "cancelled")


def complete_task(conn: Connection, task: StoredTask, text: str, trust: str, at: datetime) -> bool:
    """End a task with what came of it; False if it had ended before."""
    result: JsonObject = {"text": text, "trust": trust}
    changes: JsonObject = {"state": "completed", "next_try_at": None, "result": result, "finished_at": at}
    ended = tasks.change_task(conn, task.id, changes)
    _rest(conn, task)
    return ended


def find_task_thread(conn: Connection, task: StoredTask) -> Thread | None:
    """The thread of a task of a goal; None before its first attempt is queued."""
    return threads.find_open_thread(
        conn, channel=TASKS, chat_id=task.id, user_id=task.user_id, agent_id=task.agent_id or ""
    )


def result_note_id(task_id: str) -> str:
    """Id of the note that a task ends with."""
    return task_id.replace("task_", "note_", 1)


def _complete(conn: Connection, task: StoredTask, ended: EndedTurn) -> list[StoredEvent]:
    text = ended.result.text.strip() or "It found nothing."
    foreign = tool_calls.list_untrusted_tools(conn, ended.message.id)
    trust = trust_after(foreign)
    if not complete_task(conn, task, text, trust, ended.at):
        return []
    note = NewNote(
        user_id=task.user_id,
        goal_id=task.goal_id,
        title=task.name,
        content=text,
        written_by="agent",
        read_from=foreign or None,
    )
    note_id = goals.add_note(conn, note, result_note_id(task.id), ended.at).id
    about: JsonObject = {"note_id": note_id, "trust": trust, "name": task.name}
    return _tell(conn, task, f"The task “{task.name}” is done.\n\n{text}", "completed", about)


def _fail(conn: Connection, task: StoredTask, ended: EndedTurn) -> list[StoredEvent]:
    """Pause it until the next try, or give up. The error in its thread says when (THR-05).

    A paused agent or a used-up budget is no failure of the task.
    """
    error = ended.result.error or _SILENT
    answer = messages.find_answer(conn, ended.message.id)
    if error.code == AgentPaused.code:
        look_again = wait_for_agent(conn, task, error.for_person, ended.at, spared=True)
        if answer is not None:
            add_facts(conn, answer.id, {"retryable": True, "retry_at": look_again.isoformat()})
        return []
    final = error.code in UNRETRYABLE or task.failures + 1 >= _MOST_FAILURES
    again = ended.at + _FIRST_PAUSE * 2 ** min(task.failures, _MOST_FAILURES)
    if answer is not None:
        wait: JsonObject = {"attempt": task.failures + 1, "attempts": _MOST_FAILURES}
        facts = wait | ({"retryable": False} if final else {"retryable": True, "retry_at": again.isoformat()})
        add_facts(conn, answer.id, facts)
    if final:
        return cancel_task(conn, task, error.for_person, ended.at, told=error.code != TurnCancelled.code)
    changes: JsonObject = {"state": "paused", "next_try_at": again, "result": {"text": error.for_person}}
    tasks.change_task(conn, task.id, changes)
    return []


def _list_tools(conn: Connection, task_id: str) -> tuple[str, ...]:
    """What it was given, as far as its parent has it now."""
    task = _find_task(conn, task_id)
    if task is None:
        return ()
    given = cast("list[str]", task.request["tools"])
    goal = None if task.goal_id is None else goals.find_goal(conn, task.goal_id)
    parents = goals.list_goals(conn, task.user_id) if goal is None else [goal]
    usable = (tool for tool in given if any(tool in parent.tools for parent in parents))
    return (*_SYSTEM_TOOLS, *list_task_tools(usable))


def _check_room(conn: Connection, task: NewTask | StoredTask) -> None:
    """Raises if its goal is archived, or has as many others at work as it may."""
    goal = None if task.goal_id is None else goals.find_goal(conn, task.goal_id)
    if goal is not None and goal.state == "archived":
        raise Conflict(f"The goal “{goal.title}” is archived.", hint="Reopen it first.")
    others = [one for one in tasks.list_at_work(conn, task.goal_id, task.user_id) if one.id != task.id]
    if len(others) >= AT_ONCE:
        raise TooManyRequests(f"{AT_ONCE} tasks are under way already.", hint="Wait until one has ended.")


def _attempt_id(task: StoredTask) -> str:
    """Id of the message that is its latest attempt."""
    return f"{task.id}_{task.attempt}"


def _note_cancelled(conn: Connection, task: StoredTask) -> list[StoredEvent]:
    """In its own thread, where nothing else may happen any more."""
    thread = find_task_thread(conn, task)
    if thread is None:
        return []
    data: JsonObject = {"text": "The task is cancelled.", "task_id": task.id}
    event = TurnEvent(message_id=_attempt_id(task), key="cancelled", type="notice", data=data)
    return threads.append_events(conn, thread.id, [event])


def _find_task(conn: Connection, task_id: str) -> StoredTask | None:
    try:
        return tasks.load_task(conn, task_id)
    except NotFound:
        return None


def _find_current(conn: Connection, message: StoredMessage) -> StoredTask | None:
    """The task whose latest attempt a turn is; None if it was cancelled, deleted or begun again meanwhile."""
    task = _find_task(conn, message.chat_id)
    return None if task is None or not task.open or root_message_id(message) != _attempt_id(task) else task


def _rest(conn: Connection, task: StoredTask) -> None:
    if task.goal_id is not None:
        rest_if_done(conn, task.goal_id)


def _tell(
    conn: Connection, task: StoredTask, text: str, key: str, about: JsonObject | None = None
) -> list[StoredEvent]:
    """In the thread of the agent that gave it, and where the person hears of the goal, or of their goals."""
    goal = None if task.goal_id is None else goals.find_goal(conn, task.goal_id)
    if goal is None and task.goal_id is not None:
        return []  # deleted
    heard_of = goal or next(iter(goals.list_goals(conn, task.user_id)), None)
    channel, chat_id = (USER_AGENT, task.user_id) if goal is None else (GOALS, goal.id)
    own = threads.find_or_create_thread(
        conn, channel=channel, chat_id=chat_id, user_id=task.user_id, agent_id=task.agent_id or ""
    )
    facts = {"task_id": task.id, **(about or {})}
    told = post(conn, own.id, text, f"{task.id}:{task.attempt}:{key}", facts)
    if heard_of is None:
        return told
    words = text if goal is None else f"{goal.title}: {text}"
    return told + post(conn, find_report_thread(conn, heard_of), words, f"{task.id}:{task.attempt}:{key}:told", facts)


KIND: Final[AgentKind] = TaskKind()
