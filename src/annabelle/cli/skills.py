"""`annabelle skills`: what runs by itself, when, and what came of it."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby
from typing import Annotated, Final, cast
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import get_json, get_rows, post_json
from annabelle.cli.memory.client import confirm
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_outcome, print_paragraph, print_rows, print_secret
from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.core.tools import JsonObject
from annabelle.skills.schedule import find_time_zone

Skill = Annotated[str, typer.Argument(metavar="SKILL", help="Number or name of a skill, as the list shows it.")]
OneSkill = Annotated[str | None, typer.Argument(metavar="[SKILL]", help="Only of this one.")]
All = Annotated[bool, typer.Option("--all", help="Those that are switched off or over, too.")]

Days = Annotated[int, typer.Option("--days", min=1, max=31, help="How many days.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_SHOWN_TIMES: Final = 4

app = command_app("See and change what Annabelle does by itself: reminders and everything else on a schedule.")


@run_by_default(app)
@app.command("list")
def list_skills(all_skills: All = False, json: Json = False) -> None:
    """List what runs by itself, the next first."""
    found = [one for one in get_rows("/skills", "skills") if all_skills or one["enabled"]]
    rows = [(str(one["skillId"]), clean(str(one["name"])), clean(str(one["when"])), _state(one)) for one in found]
    empty = "Nothing runs by itself yet. Say it in a chat: remind me in 10 minutes to stretch"
    print_rows({"skills": found}, ("SKILL", "NAME", "WHEN", "NEXT"), rows, empty, json=json)


@app.command()
def show(skill: Skill, json: Json = False) -> None:
    """Show one skill whole."""
    one = get_json(f"/skills/{quote(skill, safe='')}")
    print_outcome(one, "\n".join(_describe(one)), json=json)


def _describe(one: JsonObject) -> list[str]:
    """One skill whole, with everything its runs may do."""
    lines = [f"{one['skillId']}  {one['name']}", f"Runs {one['when']}; next: {_state(one)}.", str(one["instructions"])]
    for name, values in cast("JsonObject", one["order"]).items():
        if isinstance(values, list) and values:
            lines.append(f"{name}: {', '.join(cast('list[str]', values))}")
    if one.get("madeAfter"):
        lines.append(f"Made after reading from outside: {', '.join(cast('list[str]', one['madeAfter']))}")
    return [clean(line) for line in lines]


@app.command()
def history(skill: OneSkill = None, json: Json = False) -> None:
    """List what came of each time something was due, newest first."""
    query = {} if skill is None else {"skill": skill}
    found = get_rows("/fires", "fires", **query)
    rows = [
        (_local(one["dueAt"]), clean(str(one["name"])), str(one["state"]), clean(str(one["result"] or ""))[:80])
        for one in found
    ]
    print_rows({"fires": found}, ("DUE", "NAME", "STATE", "RESULT"), rows, "Nothing was due yet.", json=json)


@app.command("next")
def list_next(days: Days = 7, json: Json = False) -> None:
    """Show what runs in the coming days, day by day."""
    found = get_rows("/fires/upcoming", "fires", days=str(days))
    rows = [
        (day, times, clean(name))
        for day, by_name in groupby(found, key=lambda one: _local(one["dueAt"], "%A %Y-%m-%d"))
        for name, times in _times_by_name(list(by_name))
    ]
    empty = "Nothing runs by itself in that time."
    print_rows({"fires": found}, ("DAY", "TIME", "NAME"), rows, empty, json=json)


@app.command()
def run(skill: Skill, json: Json = False) -> None:
    """Run a skill now, beside its schedule."""
    fire = post_json(f"/skills/{quote(skill, safe='')}/run", {})
    print_outcome(fire, f"{clean(str(fire['name']))} runs. annabelle skills history shows what came of it.", json=json)


@app.command()
def enable(skill: Skill, yes: Yes = False, json: Json = False) -> None:
    """Switch a skill on. One that was only offered shows what it may do, and asks."""
    one = get_json(f"/skills/{quote(skill, safe='')}")
    if one["confirmedAt"] is None and not yes:
        print_paragraph("\n".join(_describe(one)))
        confirm(f"Let “{clean(str(one['name']))}” do this by itself from now on?")
    _switch(skill, True, json=json)


@app.command()
def disable(skill: Skill, json: Json = False) -> None:
    """Switch a skill off; it keeps its schedule."""
    _switch(skill, False, json=json)


@app.command()
def remove(skill: Skill, json: Json = False) -> None:
    """Delete a skill for good; its history stays."""
    one = post_json(f"/skills/{quote(skill, safe='')}/delete", {})
    print_outcome(one, f"Deleted: {clean(str(one['name']))}.", json=json)


@app.command()
def webhook(skill: Skill, json: Json = False) -> None:
    """Give a skill an address of its own: whoever posts to it sets it off. It is shown this once."""
    one = post_json(f"/skills/{quote(skill, safe='')}/webhook", {})
    print_secret(one, str(one["url"]), "Keep this address to yourself; a new one makes it void.", json=json)


def _times_by_name(found: list[JsonObject]) -> list[tuple[str, str]]:
    """The times of each skill on one day: all of a few, else the first and how many."""
    by_name: dict[str, list[str]] = {}
    for one in found:
        by_name.setdefault(str(one["name"]), []).append(_local(one["dueAt"], "%H:%M"))
    return [
        (name, ", ".join(times) if len(times) <= _SHOWN_TIMES else f"{times[0]} … {times[-1]} ({len(times)} times)")
        for name, times in by_name.items()
    ]


def _switch(skill: str, enabled: bool, *, json: bool) -> None:
    one = post_json(f"/skills/{quote(skill, safe='')}/switch", {"enabled": enabled})
    print_outcome(one, f"{clean(str(one['name']))}: {_state(one)}.", json=json)


def _state(one: JsonObject) -> str:
    if not one["enabled"]:
        return f"off: {clean(str(one['disabledWhy']))}" if one.get("disabledWhy") else "off"
    return _local(one["nextDue"]) if one.get("nextDue") else "not on a schedule"


def _local(moment: object, form: str = "%Y-%m-%d %H:%M") -> str:
    zone = find_time_zone(load_settings(Home.from_environment()).user_timezone)
    return f"{datetime.fromisoformat(str(moment)).astimezone(zone):{form}}"
