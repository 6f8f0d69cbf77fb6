"""`annabelle skills`: what runs by itself, when, and what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import get_json, get_rows, post_json
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_outcome, print_rows
from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.core.tools import JsonObject
from annabelle.skills.schedule import find_time_zone

Skill = Annotated[str, typer.Argument(metavar="SKILL", help="Number or name of a skill, as the list shows it.")]
OneSkill = Annotated[str | None, typer.Argument(metavar="[SKILL]", help="Only of this one.")]
All = Annotated[bool, typer.Option("--all", help="Those that are switched off or over, too.")]

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
    lines = [f"{one['skillId']}  {one['name']}", f"Runs {one['when']}; next: {_state(one)}.", str(one["instructions"])]
    print_outcome(one, clean("\n".join(lines)), json=json)


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


@app.command()
def run(skill: Skill, json: Json = False) -> None:
    """Run a skill now, beside its schedule."""
    fire = post_json(f"/skills/{quote(skill, safe='')}/run", {})
    print_outcome(fire, f"{clean(str(fire['name']))} runs. annabelle skills history shows what came of it.", json=json)


@app.command()
def enable(skill: Skill, json: Json = False) -> None:
    """Switch a skill on."""
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


def _switch(skill: str, enabled: bool, *, json: bool) -> None:
    one = post_json(f"/skills/{quote(skill, safe='')}/switch", {"enabled": enabled})
    print_outcome(one, f"{clean(str(one['name']))}: {_state(one)}.", json=json)


def _state(one: JsonObject) -> str:
    if not one["enabled"]:
        return f"off: {clean(str(one['disabledWhy']))}" if one.get("disabledWhy") else "off"
    return _local(one["nextDue"]) if one.get("nextDue") else "not on a schedule"


def _local(moment: object) -> str:
    zone = find_time_zone(load_settings(Home.from_environment()).user_timezone)
    return f"{datetime.fromisoformat(str(moment)).astimezone(zone):%Y-%m-%d %H:%M}"
