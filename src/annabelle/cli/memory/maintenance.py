"""Memory maintenance commands: `tidy`, `undo`, `changes`, `learn`, `backups` and `restore`."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from annabelle.cli.hub_client import post_json
from annabelle.cli.memory.client import (
    Agent,
    OfCategory,
    call_memory_tool,
    confirm,
    format_moment,
    print_answer,
    rows_of,
    structured,
    to_one_line,
)
from annabelle.cli.options import Json
from annabelle.cli.output import clean, print_json, print_line, print_paragraph, print_rows, print_table
from annabelle.cli.spinner import Spinner
from annabelle.core.result_text import format_size
from annabelle.core.tools import JsonObject

ASK_SECONDS = 660.0
_PLANNERS = {"model": "the model", "rules": "rules", "you": "you"}


def tidy(
    category: OfCategory = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; do what is proposed.")] = False,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Propose which facts to merge or retire, and do it after a yes. `undo` takes it back."""
    asked: JsonObject = {"agentId": agent, "category": category}
    with Spinner("Looking through the facts"):
        plan = _post("/memory/tidy", asked)
    actions = cast("list[JsonObject]", plan["actions"])
    if not json:
        _print_plan(plan)
    if not actions or (json and not yes):
        if json:
            print_json(plan)
        return
    if not yes:
        confirm("Do this?")
    with Spinner("Tidying"):
        done = _post("/memory/tidy", {**asked, "apply": True, "actions": actions})
    if json:
        print_json(done)
        return
    for sentence in cast("list[str]", done["notDone"]):
        print_paragraph(f"Not done: {sentence}")
    if done["applied"]:
        print_line(f"Done. To undo it: annabelle memory undo {done['changeId']}")


def undo(
    change: Annotated[int | None, typer.Argument(min=1, help="Number of the change; by default the last.")] = None,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Take a tidying back."""
    undone = structured(call_memory_tool("undo_change", change_id=change, agent_id=agent))
    if json:
        print_json(undone)
        return
    print_line(f"Change {undone['change_id']} is undone.")
    for words, name in (("Current again", "restored_ids"), ("History now", "retired_ids")):
        ids = ", ".join(str(fact_id) for fact_id in cast("list[int]", undone[name]))
        if ids:
            print_line(f"{words}: {ids}")


def list_changes(agent: Agent = None, json: Json = False) -> None:
    """List what was tidied, newest first."""
    found = call_memory_tool("list_changes", agent_id=agent)
    rows = [
        (
            str(row["id"]),
            format_moment(row["made_at"]),
            format_moment(row["undone_at"]) or "-",
            to_one_line(row["summary"]),
        )
        for row in rows_of(found, "changes")
    ]
    titles = ("CHANGE", "MADE", "UNDONE", "WHAT")
    print_rows(structured(found), titles, rows, "Nothing was tidied yet.", json=json)


def learn(agent: Agent = None, json: Json = False) -> None:
    """Learn facts now from conversations that were not looked through yet; else it happens when they rest."""
    with Spinner("Reading what was said"):
        answer = _post("/memory/learn", {"agentId": agent})
    if json:
        print_json(answer)
        return
    learnt = cast("list[JsonObject]", answer["facts"])
    for fact in learnt:
        print_line(f"{fact['factId']}  {to_one_line(fact['fact'])}{'' if fact['status'] == 'stored' else ' (known)'}")
    if answer["refused"]:
        print_paragraph(f"Nothing {'more ' if learnt else ''}was learnt: {answer['refused']}")
    elif not learnt:
        print_line("Nothing new in what was said." if answer["turns"] else "Everything was looked through already.")


def _print_plan(plan: JsonObject) -> None:
    known = {fact["factId"]: fact for fact in cast("list[JsonObject]", plan["facts"])}
    actions = cast("list[JsonObject]", plan["actions"])
    if plan["refused"]:
        print_paragraph(f"The model was no help here ({plan['refused']}), so rules looked through them.")
    if not actions:
        print_line("Nothing to tidy.")
        return
    print_line(f"Proposed by {_PLANNERS.get(str(plan['plannedBy']), str(plan['plannedBy']))}:")
    rows: list[tuple[str, str, str]] = []
    for action in actions:
        ids = cast("list[int]", action["factIds"])
        rows += [("-", str(fact_id), to_one_line(known.get(fact_id, {}).get("fact"))) for fact_id in ids]
        if action.get("fact"):
            rows.append(("+", "", to_one_line(action["fact"])))
        if action.get("reason"):
            rows.append(("", "", f"({to_one_line(action['reason'])})"))
    print_table(("", "FACT", "WHAT"), rows)


def _post(path: str, body: JsonObject) -> JsonObject:
    return post_json(path, {name: value for name, value in body.items() if value is not None}, ASK_SECONDS)


def list_backups(json: Json = False) -> None:
    """List the backups of the memory, newest first."""
    found = call_memory_tool("list_backups")
    rows = [
        (str(row["name"]), format_moment(row["made_at"]), format_size(float(str(row["size_bytes"] or 0))))
        for row in rows_of(found, "backups")
    ]
    print_rows(structured(found), ("BACKUP", "MADE", "SIZE"), rows, clean(found.text), json=json)


def restore(
    name: Annotated[str | None, typer.Argument(help="Name of a backup, as listed; by default the newest.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Put a backup in the place of the memory. What is there now is kept beside it."""
    if not yes:
        confirm(f"Put {name or 'the newest backup'} in the place of what is remembered now?")
    with Spinner("Restoring"):
        restored = call_memory_tool("restore_backup", name=name)
    print_answer(restored, json=json)
