"""`annabelle tasks`: work that agents handed on: to subagents, to the background, and for goals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from contextlib import aclosing
from typing import Annotated, Final
from urllib.parse import quote

import typer

from annabelle.cli.conversation import parse_event
from annabelle.cli.hub_client import CliHubClient, ask_hub, get_json, get_rows, post_json
from annabelle.cli.local_time import format_local
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import ChatScreen, clean, print_json, print_line, print_outcome, print_rows
from annabelle.core.tools import JsonObject
from annabelle.core.turn_view import TurnView

Task = Annotated[str, typer.Argument(metavar="ID", help="Id of a task, as the list shows it.")]
OfGoal = Annotated[str | None, typer.Option("--goal", help="Only of this goal: number, words of its title or id.")]
_KINDS: Final = {"subagent": "subagent", "tool_call": "tool call", "goal": "goal"}
_OVER: Final = ("done", "failed", "unknown", "completed", "cancelled")
_PIECES: Final = ("think", "text", "usage")
"""Events after which a task goes on as before."""
_LOOK_SECONDS: Final = 30.0

app = command_app("See the work that agents handed on: to subagents, the background and goals.")


@run_by_default(app)
@app.command("list")
def list_tasks(goal: OfGoal = None, json: Json = False) -> None:
    """List the work that agents handed on, newest first."""
    query = {} if goal is None else {"goal": goal}
    found = get_rows("/tasks", "tasks", **query)
    rows = [_row(task) for task in found]
    empty = "Nothing was handed on yet: neither to a subagent nor to the background nor for a goal."
    print_rows({"tasks": found}, ("TASK", "KIND", "STATE", "SINCE", "NAME"), rows, empty, json=json)


@app.command()
def show(task: Task, json: Json = False) -> None:
    """Show one task: what it was given, how it stands and what it found."""
    found = get_json(_path(task))
    if json:
        print_json(found)
    else:
        print_line("\n".join(_describe(found)))


@app.command()
def watch(task: Task, json: Json = False) -> None:
    """Show what a task does, live, until it ends. Ctrl-C stops watching, not the task."""
    found = ask_hub(lambda client: _watch(client, task, json=json))
    if json:
        print_json(found)
    else:
        print_line("\n".join(_describe(found)))


@app.command()
def retry(task: Task, json: Json = False) -> None:
    """Try a task of a goal again now, that is paused or was cancelled."""
    _print_state(post_json(f"{_path(task)}/retry", {}), json=json)


@app.command()
def cancel(task: Task, json: Json = False) -> None:
    """Stop a task of a goal."""
    _print_state(post_json(f"{_path(task)}/cancel", {}), json=json)


async def _watch(client: CliHubClient, task: str, *, json: bool) -> JsonObject:
    """Shows the events of the task's thread. Whether it has ended says only the task, which is asked after each."""
    found = await client.get(_path(task))
    if found["state"] in _OVER or found["threadId"] is None:
        return found
    changed = asyncio.Event()
    reader = asyncio.create_task(_show_events(client, str(found["threadId"]), changed, json=json))
    reader.add_done_callback(lambda _: changed.set())
    try:
        while found["state"] not in _OVER:
            # An end that no event tells of is seen even so, only later.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await changed.wait()
            changed.clear()
            found = await client.get(_path(task))
            if reader.done():
                reader.result()
    finally:
        reader.cancel()
    return found


async def _show_events(client: CliHubClient, thread_id: str, changed: asyncio.Event, *, json: bool) -> None:
    screen = ChatScreen(sys.stdout, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    views: dict[str, TurnView] = {}
    async with aclosing(client.events(thread_id, "0")) as events:
        async for event in events:
            stored = parse_event(event)
            if stored is None:
                continue
            if json:
                print_json(stored)
            else:
                view = views.setdefault(stored.message_id, TurnView(stored.message_id))
                for change in view.apply(stored):
                    screen.show(change)
            if stored.type not in _PIECES:
                changed.set()


def _path(task: str) -> str:
    return f"/tasks/{quote(task, safe='')}"


def _row(task: JsonObject) -> tuple[str, ...]:
    kind = _KINDS.get(str(task["kind"]), str(task["kind"]))
    since = str(task["createdAt"])[:16]
    return str(task["taskId"]), kind, str(task["state"]), since, clean(str(task["name"]))


def _describe(task: JsonObject) -> list[str]:
    lines = [f"{task['taskId']}  {task['name']}: {task['state']}", str(task["instructions"] or "")]
    if task["progress"]:
        lines.append(f"Doing: {task['progress']}")
    if task["nextTryAt"]:
        lines.append(f"It is tried again at {format_local(task['nextTryAt'])}.")
    lines.append(str(task["result"] or ""))
    return [clean(line) for line in lines if line]


def _print_state(task: JsonObject, *, json: bool) -> None:
    print_outcome(task, f"{clean(str(task['name']))}: {task['state']}.", json=json)
