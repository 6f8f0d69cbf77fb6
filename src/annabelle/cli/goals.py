"""`annabelle goals`: what Annabelle looks after for weeks, made, changed and talked to from the terminal."""

from __future__ import annotations

from typing import Annotated, Final, cast
from urllib.parse import quote

import typer

from annabelle.cli.chat import is_interactive, talk
from annabelle.cli.hub_client import get_json, get_rows, post_json
from annabelle.cli.hub_process import temporary_hub
from annabelle.cli.local_time import format_local, read_clock_time
from annabelle.cli.memory.client import confirm
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_json, print_line, print_outcome, print_rows
from annabelle.core.errors import CallerMistake
from annabelle.core.home import Home
from annabelle.core.ids import new_id
from annabelle.core.messages import GOALS
from annabelle.core.tools import JsonObject

Goal = Annotated[str, typer.Argument(metavar="GOAL", help="Number, words of the title or id, as the list shows it.")]
Goals = Annotated[list[str], typer.Argument(metavar="GOAL...", help="Goals, in the order you want.")]
All = Annotated[bool, typer.Option("--all", help="Those that are archived, too.")]
Title = Annotated[str | None, typer.Option("--title", help="A few words.")]
Description = Annotated[str | None, typer.Option("--description", help="What is to be reached, and by when.")]
Instructions = Annotated[str | None, typer.Option("--instructions", help="How it is to be done.")]
Tools = Annotated[list[str] | None, typer.Option("--tool", help="A tool it may use; can be given again.")]
Learnings = Annotated[list[str] | None, typer.Option("--learning", help="What it should know; can be given again.")]
_WHEN_HELP: Final = 'When to look at it: "weekdays 08:30", "daily 9:00", "friday 17:00".'
CheckIn = Annotated[str | None, typer.Option("--check-in", help=_WHEN_HELP)]
When = Annotated[str | None, typer.Argument(metavar="[WHEN]", help=_WHEN_HELP)]
Hours = Annotated[float | None, typer.Option("--in", min=1, max=720, help="Once, in so many hours.")]
Intent = Annotated[str, typer.Option("--for", help="What it is for.")]
Clear = Annotated[bool, typer.Option("--clear", help="Take back what was arranged.")]
Add = Annotated[str | None, typer.Option("--add", help="Add this one.")]
Change = Annotated[tuple[str, str] | None, typer.Option("--change", metavar="ID TEXT", help="Reword one.")]
Remove = Annotated[str | None, typer.Option("--remove", metavar="ID", help="Remove one.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CREATION: Final = "goal_creation"

app = command_app("Give Annabelle goals to look after for weeks, and talk to them.")


@run_by_default(app)
@app.command("list")
def list_goals(all_goals: All = False, json: Json = False) -> None:
    """List your goals in your own order."""
    found = get_rows("/goals", "goals", archived=str(all_goals).lower())
    rows = [(str(one["number"]), clean(str(one["title"])), str(one["state"]), _next(one)) for one in found]
    empty = "There are no goals at work. Set one up: annabelle goals new; --all shows those you put away."
    print_rows({"goals": found}, ("GOAL", "TITLE", "STATE", "NEXT CHECK-IN"), rows, empty, json=json)


@app.command()
def show(goal: Goal, json: Json = False) -> None:
    """Show one goal whole: what it knows, what is under way, and when it comes back by itself."""
    one = get_json(_path(goal))
    if json:
        print_json(one)
    else:
        print_line("\n".join(_describe(one)))


@app.command()
def new(
    title: Title = None,
    description: Description = None,
    instructions: Instructions = None,
    tool: Tools = None,
    learning: Learnings = None,
    check_in: CheckIn = None,
    json: Json = False,
) -> None:
    """Set up a goal: with --title at once, else in a chat that asks for what is needed and proposes it."""
    given = {"description": description, "instructions": instructions, "tools": tool, "learnings": learning}
    fields: JsonObject = {name: value for name, value in given.items() if value}
    if check_in is not None:
        fields["checkIn"] = _read_when(check_in)
    if title is None and fields:
        raise CallerMistake("A goal needs a title.", hint="Add --title, or leave all out to be asked.")
    if title is None:
        if is_interactive(json=json):
            print_line("Say what you want to reach. You are asked before the goal is set up.")
        talk(Home.from_environment(), new_id("chat"), None, json=json, channel=_CREATION)
        return
    made = post_json("/goals", {"title": title, **fields})
    _print_changed(made, f"is set up. Talk to it: annabelle goals chat {made['number']}", json=json)


@app.command()
def chat(goal: Goal, json: Json = False) -> None:
    """Talk to a goal. Lines piped in are answered one by one."""
    home = Home.from_environment()
    with temporary_hub(home):
        one = get_json(_path(goal))
        if is_interactive(json=json):
            print_line(f"This is the goal “{clean(str(one['title']))}”.")
        talk(home, str(one["goalId"]), str(one["agentId"]), json=json, channel=GOALS)


@app.command()
def edit(
    goal: Goal,
    title: Title = None,
    description: Description = None,
    instructions: Instructions = None,
    tool: Tools = None,
    json: Json = False,
) -> None:
    """Change a goal; what is not named stays. Its tools are replaced by those that are named."""
    given = {"title": title, "description": description, "instructions": instructions, "tools": tool}
    changes: JsonObject = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise CallerMistake("There is nothing to change.", hint="annabelle goals edit --help shows what can be.")
    _print_changed(post_json(f"{_path(goal)}/update", changes), "was changed", json=json)


@app.command()
def archive(goal: Goal, json: Json = False) -> None:
    """Put a goal away: nothing runs for it any more, and its notes can still be searched."""
    _print_changed(post_json(f"{_path(goal)}/archive", {}), "is archived", json=json)


@app.command()
def reopen(goal: Goal, json: Json = False) -> None:
    """Take up an archived goal again."""
    _print_changed(post_json(f"{_path(goal)}/reopen", {}), "is taken up again", json=json)


@app.command()
def reset(goal: Goal, json: Json = False) -> None:
    """Start the conversation of a goal afresh; its notes and learnings stay."""
    _print_changed(post_json(f"{_path(goal)}/reset", {}), "starts afresh", json=json)


@app.command()
def delete(goal: Goal, yes: Yes = False, json: Json = False) -> None:
    """Delete a goal for good, with its notes, learnings and tasks."""
    one = get_json(_path(goal))
    if not yes:
        confirm(f"Delete “{clean(str(one['title']))}” with {one['notes']} notes for good?")
    _print_changed(post_json(f"{_path(str(one['goalId']))}/delete", {}), "is deleted", json=json)


@app.command()
def order(goals: Goals, json: Json = False) -> None:
    """Put goals first, in this order; the others follow as they were."""
    ids = [_find_id(goal) for goal in goals]
    answer = post_json("/goals/reorder", {"goals": ids})
    found = cast("list[JsonObject]", answer["goals"])
    rows = [(str(one["number"]), clean(str(one["title"])), str(one["state"]), _next(one)) for one in found]
    print_rows(answer, ("GOAL", "TITLE", "STATE", "NEXT CHECK-IN"), rows, "", json=json)


@app.command("check-in")
def check_in(
    goal: Goal, when: When = None, hours: Hours = None, intent: Intent = "", clear: Clear = False, json: Json = False
) -> None:
    """Arrange when a goal is looked at without being asked, or show what is arranged."""
    if sum((when is not None, hours is not None, clear)) > 1:
        raise CallerMistake("Give one of WHEN, --in and --clear.")
    if when is None and hours is None and not clear:
        answer: JsonObject = {"checkIns": get_json(_path(goal))["checkIns"]}
    else:
        body: JsonObject = {"action": "clear"} if clear else {"action": "follow_up", "delayHours": hours}
        if when is not None:
            body = _read_when(when)
        answer = post_json(f"{_path(goal)}/check-in", {**body, "intent": intent})
    rows = [
        (str(one["sort"]).replace("_", "-"), _due(one["nextDue"]), clean(str(one["intent"])))
        for one in cast("list[JsonObject]", answer["checkIns"])
    ]
    print_rows(answer, ("CHECK-IN", "NEXT", "FOR"), rows, "It is not looked at by itself.", json=json)


@app.command()
def learnings(goal: Goal, add: Add = None, change: Change = None, remove: Remove = None, json: Json = False) -> None:
    """List what was learnt for a goal, or change it."""
    path = f"{_path(goal)}/learnings"
    if add is not None:
        post_json(path, {"content": add})
    if change is not None:
        post_json(f"{path}/{quote(change[0], safe='')}/update", {"content": change[1]})
    if remove is not None:
        post_json(f"{path}/{quote(remove, safe='')}/remove", {})
    found = get_rows(path, "learnings")
    rows = [(str(one["learningId"]), clean(str(one["content"]))) for one in found]
    print_rows({"learnings": found}, ("LEARNING", ""), rows, "Nothing was learnt yet.", json=json)


def _path(goal: str) -> str:
    """Address of a goal. It is looked up first, because a title may have signs that an address cannot hold."""
    return f"/goals/{_find_id(goal)}"


def _find_id(goal: str) -> str:
    (found,) = get_rows("/goals", "goals", named=goal)
    return str(found["goalId"])


def _print_changed(one: JsonObject, what: str, *, json: bool) -> None:
    print_outcome(one, f"{clean(str(one['title']))} {what}.", json=json)


def _read_when(text: str) -> JsonObject:
    """A check-in in words: how often or on which day, and a time."""
    found: JsonObject = {}
    for word in text.casefold().split():
        if (clock := read_clock_time(word)) is not None:
            found["time"] = clock
        elif word in _DAYS:
            found |= {"frequency": "weekly", "day": word}
        elif word in ("daily", "weekdays", "weekly"):
            found.setdefault("frequency", word)
        else:
            raise CallerMistake(f"“{word}” is not understood.", hint=_WHEN_HELP)
    return found


def _describe(one: JsonObject) -> list[str]:
    lines = [f"{one['number']}  {one['title']}: {one['state']}", str(one["description"]), str(one["instructions"])]
    lines.append(f"Tools: {', '.join(cast('list[str]', one['tools'])) or 'only those that every goal has'}")
    for due in cast("list[JsonObject]", one["checkIns"]):
        lines.append(f"{str(due['sort']).replace('_', '-')} {_due(due['nextDue'])}: {due['intent']}")
    if running := cast("JsonObject | None", one["running"]):
        lines.append(f"At work since {format_local(running['since'])} on {running['messageId']}.")
    for task in cast("list[JsonObject]", one["tasks"]):
        lines.append(f"Task {task['taskId']} ({task['state']}): {task['progress'] or task['name']}")
    lines += [f"Learnt: {learnt['content']}" for learnt in cast("list[JsonObject]", one["learnings"])]
    spent = "" if one["costUsd"] is None else f", ${one['costUsd']:.4f}"
    lines.append(f"{one['notes']} notes; {one['calls']} model calls{spent}.")
    return [clean(line) for line in lines if line]


def _next(one: JsonObject) -> str:
    return _due(one["nextCheckIn"])


def _due(moment: object) -> str:
    return "–" if moment is None else format_local(moment)
