"""`annabelle feed`: what is new for the goals, and when it comes."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from annabelle.cli.hub_client import get_json, post_json
from annabelle.cli.local_time import format_local, read_clock_time
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_json, print_line, print_paragraph, print_rows
from annabelle.core.tools import JsonObject

Part = Annotated[str | None, typer.Option(metavar="HH:MM", help="When it comes; off switches it off.")]
Before = Annotated[str | None, typer.Option("--before", metavar="ID", help="Go on behind this item.")]
Most = Annotated[int, typer.Option("-n", "--last", min=1, max=200, help="How many.")]

app = command_app("See what is new for your goals, and say when it comes.")


@run_by_default(app)
@app.command()
def show(json: Json = False) -> None:
    """Show what is new."""
    _print_feed(get_json("/feed"), json=json)


@app.command()
def history(last: Most = 50, before: Before = None, json: Json = False) -> None:
    """Show what the feed had, newest first."""
    query = {} if before is None else {"before": before}
    _print_feed(get_json("/feed/history", limit=last, **query), json=json)


@app.command()
def schedule(morning: Part = None, afternoon: Part = None, evening: Part = None, json: Json = False) -> None:
    """Show when the feed comes, or change it."""
    given = {"morning": morning, "afternoon": afternoon, "evening": evening}
    wanted = {part: time for part, time in given.items() if time is not None}
    changes: JsonObject = {
        part: None if time == "off" else read_clock_time(time) or time for part, time in wanted.items()
    }
    found = post_json("/feed/schedule", changes) if changes else get_json("/feed/schedule")
    rows = [(part, str(found[part] or "off")) for part in given]
    print_rows(found, ("FEED", f"TIME ({found['timeZone']})"), rows, "", json=json)


def _print_feed(found: JsonObject, *, json: bool) -> None:
    if json:
        print_json(found)
        return
    items = cast("list[JsonObject]", found["items"])
    for one in items:
        print_line(clean(f"{format_local(one['createdAt'])}  {one['title']}  ({one['kind']})"))
        print_paragraph(clean(str(one["content"])))
        print_line("")
    if not items:
        print_paragraph(
            "There is nothing in your feed yet. It is about your goals (annabelle goals new);"
            " annabelle feed schedule says when it comes."
        )
    elif found["before"] is not None:
        print_paragraph(f"There is more: annabelle feed history --before {found['before']}")
