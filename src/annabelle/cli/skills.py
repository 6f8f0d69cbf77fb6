"""`annabelle skills`: what runs by itself, when, and what came of it; and skills that others wrote, as files."""

from __future__ import annotations

import logging
import secrets
import shutil
from itertools import groupby
from pathlib import Path
from typing import Annotated, Final, cast
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import get_json, get_rows, post_json
from annabelle.cli.local_time import format_local
from annabelle.cli.memory.client import confirm
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_line, print_outcome, print_paragraph, print_rows, print_secret
from annabelle.core.errors import CallerMistake, Conflict, SecurityBlocked, StorageTrouble, explain_os_error
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject
from annabelle.skills.skill_file import SkillFile, SkillMistake
from annabelle.skills.skill_folder import SkillFolder, SkillPins, hash_skill
from annabelle.skills.skill_source import FetchedSkill, fetch_skill, inspect_skill

Skill = Annotated[str, typer.Argument(metavar="SKILL", help="Number or name of a skill, as the list shows it.")]
OneSkill = Annotated[str | None, typer.Argument(metavar="[SKILL]", help="Only of this one.")]
Source = Annotated[str, typer.Argument(help="A folder, a .zip or .tar.gz file, or the address of a git repository.")]
Installed = Annotated[str, typer.Argument(metavar="NAME", help="Name of a skill in the folder of skills.")]
Chosen = Annotated[str | None, typer.Option("--skill", help="Which one, where there are several.")]
Force = Annotated[bool, typer.Option("--force", help="Put it in the place of another skill of that name.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
All = Annotated[bool, typer.Option("--all", help="Those that are switched off or over, too.")]

Days = Annotated[int, typer.Option("--days", min=1, max=31, help="How many days.")]
_SHOWN_TIMES: Final = 4
_SCAN_SECONDS: Final = 300.0

app = command_app("See and change what Annabelle does by itself: reminders and everything else on a schedule.")


@run_by_default(app)
@app.command("list")
def list_skills(all_skills: All = False, json: Json = False) -> None:
    """List what runs by itself, the next first."""
    answer = get_json("/skills")
    found = [one for one in cast("list[JsonObject]", answer["skills"]) if all_skills or one["enabled"]]
    rows = [(str(one["skillId"]), clean(str(one["name"])), clean(str(one["when"])), _state(one)) for one in found]
    always = cast("list[JsonObject]", answer["afterConversations"])
    rows += [("", str(one["name"]), str(one["when"]), "") for one in always]
    empty = "Nothing runs by itself yet. Say it in a chat: remind me in 10 minutes to stretch"
    print_rows({**answer, "skills": found}, ("SKILL", "NAME", "WHEN", "NEXT"), rows, empty, json=json)


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
        (format_local(one["dueAt"]), clean(str(one["name"])), str(one["state"]), clean(str(one["result"] or ""))[:80])
        for one in found
    ]
    print_rows({"fires": found}, ("DUE", "NAME", "STATE", "RESULT"), rows, "Nothing was due yet.", json=json)


@app.command("next")
def list_next(days: Days = 7, json: Json = False) -> None:
    """Show what runs in the coming days, day by day."""
    found = get_rows("/fires/upcoming", "fires", days=str(days))
    rows = [
        (day, times, clean(name))
        for day, by_name in groupby(found, key=lambda one: format_local(one["dueAt"], "%A %Y-%m-%d"))
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
        by_name.setdefault(str(one["name"]), []).append(format_local(one["dueAt"], "%H:%M"))
    return [
        (name, ", ".join(times) if len(times) <= _SHOWN_TIMES else f"{times[0]} … {times[-1]} ({len(times)} times)")
        for name, times in by_name.items()
    ]


@app.command()
def files(json: Json = False) -> None:
    """List the skills that lie in your home as SKILL.md files, and why others are not used."""
    folder = SkillFolder.open_home(Home.from_environment())
    log = logging.getLogger(SkillFolder.__module__)
    log.disabled = True  # said below; the log would say it twice
    used, refused = folder.skills(), folder.refused()
    log.disabled = False
    pins = {} if any(one.reason.kind == "changed" for one in refused) else folder.pins.read()
    rows = [(one.name, "in use", clean(_describe_file(one, pins))) for one in used]
    rows += [(clean(one.folder.name), "not used", clean(str(one.reason))) for one in refused]
    data = {
        "skills": [
            {
                "name": one.name,
                "description": one.description,
                "folder": str(one.folder),
                "tools": one.tools,
                "keywords": one.keywords,
                "warnings": one.warnings,
                "installed": pins.get(one.name),
            }
            for one in used
        ],
        "refused": [{"folder": str(one.folder), "kind": one.reason.kind, "reason": str(one.reason)} for one in refused],
    }
    empty = f"There are no skills in {folder.folder}. Install one: annabelle skills install PATH"
    print_rows(data, ("SKILL", "STATE", ""), rows, empty, json=json)


@app.command()
def install(source: Source, skill: Chosen = None, force: Force = False, yes: Yes = False, json: Json = False) -> None:
    """Install a skill that others wrote: show what it asks for, have it scanned, and ask."""
    home = Home.from_environment()
    staging = home.skills / f".incoming-{secrets.token_hex(8)}"
    with explain_os_error(StorageTrouble, f"The skill can not be copied to {home.skills}"):
        staging.mkdir(parents=True)
        try:
            fetched = fetch_skill(source, staging, skill)
            _install(home, fetched, staging, force=force, yes=yes, json=json)
        except SkillMistake as mistake:
            raise CallerMistake(f"The skill is not installed: {mistake}.") from mistake
        finally:
            shutil.rmtree(staging, ignore_errors=True)


@app.command()
def accept(skill: Installed, yes: Yes = False, json: Json = False) -> None:
    """Say yes to a skill in your home as its files are now."""
    folder = SkillFolder.open_home(Home.from_environment())
    try:
        if skill != Path(skill).name or skill in ("", ".."):
            raise SkillMistake("unreadable", f"{skill!r} is no name of a skill")
        known = folder.pins.read().get(skill, {})
        fetched = inspect_skill(folder.folder / skill, str(known.get("source") or folder.folder / skill))
    except SkillMistake as mistake:
        raise CallerMistake(f"The skill can not be used: {mistake}.") from mistake
    report = _review(fetched, skill, yes=yes, json=json)
    folder.pins.add(skill, fetched.content_hash, fetched.origin)
    print_outcome({**report, "installed": True}, f"{skill} is in use as it is now.", json=json)


def _install(home: Home, fetched: FetchedSkill, staging: Path, *, force: bool, yes: bool, json: bool) -> None:
    name, pins = fetched.skill.name, SkillPins(home.skill_pins_file)
    target = home.skills / name
    if target.exists() or target.is_symlink():
        same = hash_skill(target) == fetched.content_hash if target.is_dir() else False
        if same and pins.read().get(name, {}).get("hash") == fetched.content_hash:
            sentence = f"{name} is installed already, and it is the same."
            print_outcome({**_summarise(fetched), "installed": True, "changed": False}, sentence, json=json)
            return
        if not same and not force:
            raise Conflict(f"There is another skill called {name}.", hint="--force puts this one in its place.")
    report = _review(fetched, f"{staging.name}/{name}", yes=yes, json=json)
    # First: should the copy fail, the old files are off and not taken for the new ones.
    pins.add(name, fetched.content_hash, fetched.origin)
    if target.exists() or target.is_symlink():
        target.rename(staging / ".old")
    fetched.skill.folder.rename(target)
    sentence = f"{name} is installed. A change in its files will switch it off until you accept it."
    print_outcome({**report, "installed": True, "changed": True}, sentence, json=json)


def _review(fetched: FetchedSkill, folder: str, *, yes: bool, json: bool) -> JsonObject:
    """Has it scanned, shows it and asks. A yes in advance is none to something the guardian takes for an attack."""
    scan = post_json("/skill-files/scan", {"folder": folder}, _SCAN_SECONDS)
    if scan["hash"] != fetched.content_hash:
        raise Conflict("Its files changed while they were scanned.", hint="Try again.")
    found = cast("list[JsonObject]", scan["found"])
    report: JsonObject = {**_summarise(fetched), "scan": found}
    if not json:
        print_line(clean(_render_report(fetched, found)))
    if yes and any(one["risk"] == "high" for one in found):
        raise SecurityBlocked(
            f"The skill is not installed: {_render_scan(found)}.",
            hint="If you have read it and want it all the same, leave out --yes.",
        )
    if not yes:
        confirm("Use this skill?")
    return report


def _summarise(fetched: FetchedSkill) -> JsonObject:
    skill = fetched.skill
    return {
        "name": skill.name,
        "description": skill.description,
        "license": skill.license,
        "compatibility": skill.compatibility,
        "tools": skill.tools,
        "files": fetched.files,
        "scripts": fetched.scripts,
        "bytes": fetched.size,
        "schedule": skill.trigger_config,
        "warnings": skill.warnings,
        "source": fetched.origin,
        "hash": fetched.content_hash,
    }


def _render_report(fetched: FetchedSkill, found: list[JsonObject]) -> str:
    skill = fetched.skill
    facts = {
        "From": fetched.origin,
        "License": skill.license,
        "Needs": skill.compatibility,
        "Tools": ", ".join(skill.tools),
        "Scripts": ", ".join(fetched.scripts),
        "Runs by itself": ", ".join(f"{key} {value}" for key, value in skill.trigger_config.items()),
        "Size": f"{len(fetched.files)} files, {-(-fetched.size // 1024)} KB",
        "Hash": fetched.content_hash,
        "Warnings": "; ".join(skill.warnings),
        "Guardian": _render_scan(found),
    }
    lines = [f"  {name}: {' '.join(value.split())}" for name, value in facts.items() if value]
    return "\n".join([f"{skill.name}: {' '.join(skill.description.split())}", *lines])


def _render_scan(found: list[JsonObject]) -> str:
    if any(one["unscanned"] for one in found):
        return "nothing was scanned, because the guardian is off"
    risky = [f"{', '.join(cast('list[str]', one['threats']))} in {one['file']} ({one['risk']} risk)" for one in found]
    return f"the guardian found {'; '.join(risky)}" if risky else "the guardian found nothing"


def _describe_file(skill: SkillFile, pins: dict[str, JsonObject]) -> str:
    pin = pins.get(skill.name)
    origin = "in your folder, not pinned" if pin is None else f"from {pin.get('source')}"
    return "; ".join([origin, *skill.warnings])


def _switch(skill: str, enabled: bool, *, json: bool) -> None:
    one = post_json(f"/skills/{quote(skill, safe='')}/switch", {"enabled": enabled})
    print_outcome(one, f"{clean(str(one['name']))}: {_state(one)}.", json=json)


def _state(one: JsonObject) -> str:
    if not one["enabled"]:
        return f"off: {clean(str(one['disabledWhy']))}" if one.get("disabledWhy") else "off"
    return format_local(one["nextDue"]) if one.get("nextDue") else "not on a schedule"
