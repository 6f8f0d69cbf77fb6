"""`annabelle notes`: notes and links that are kept, for a goal or for none."""

from __future__ import annotations

from typing import Annotated, Final, cast
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import get_json, post_json
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_json, print_line, print_outcome, print_rows
from annabelle.cli.spinner import Spinner
from annabelle.core.errors import CallerMistake
from annabelle.core.tools import JsonObject

Note = Annotated[str, typer.Argument(metavar="NOTE", help="Id of a note, as the list shows it.")]
Title = Annotated[str | None, typer.Argument(help="What the note is called.")]
Text = Annotated[str, typer.Argument(help="What it says; notes:PATH refers to a Markdown note of the workspace.")]
Words = Annotated[list[str], typer.Argument(help="Words that the note must have, all of them.")]
Url = Annotated[str | None, typer.Option("--url", help="Keep this link: its page is read and summed up.")]
Goal = Annotated[str | None, typer.Option("--goal", help="Id or title of a goal.")]
ToGoal = Annotated[str | None, typer.Argument(metavar="[GOAL]", help="Id or title of a goal; without it, to none.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=500, help="At most so many.")]
Before = Annotated[str | None, typer.Option("--before", metavar="NOTE", help="Go on behind this note.")]

# A page may take as long as the searcher and the model may.
_LINK_SECONDS: Final = 300.0

app = command_app("Keep notes and links, find them, and put them to your goals.")


@run_by_default(app)
@app.command("list")
def list_notes(goal: Goal = None, limit: Limit = 50, before: Before = None, json: Json = False) -> None:
    """List your notes, newest first."""
    none = 'There are no notes yet. annabelle notes add "Teacher" "Mrs. Novak, Tuesdays" keeps one.'
    empty = none if before is None else "There are no older notes."
    _print_found(_find(goal, "", limit, before), empty, json=json)


@app.command()
def search(words: Words, goal: Goal = None, limit: Limit = 50, before: Before = None, json: Json = False) -> None:
    """Find notes by words, also among the Markdown notes of the workspace."""
    empty = "No note has these words." if before is None else "No older note has these words."
    _print_found(_find(goal, " ".join(words), limit, before), empty, json=json)


@app.command()
def show(note: Note, json: Json = False) -> None:
    """Show one note whole, and the goal it fits."""
    one = get_json(f"/notes/{quote(note, safe='')}")
    if json:
        print_json(one)
        return
    print_line(f"{one['noteId']}  {clean(str(one['title']))}")
    if one.get("readFrom"):
        sources = ", ".join(cast("list[str]", one["readFrom"]))
        print_line(clean(f"With words from outside: {sources}"))
    print_line(f"\n{clean(str(one['content']))}")
    if offer := _describe_offer(one):
        print_line(f"\n{offer}")


@app.command()
def add(title: Title = None, text: Text = "", url: Url = None, goal: Goal = None, json: Json = False) -> None:
    """Keep a note, or a link with what its page says."""
    for_goal: JsonObject = {} if goal is None else {"goal": goal}
    if url is not None:
        if title is not None:
            raise CallerMistake("A link brings its own title.", hint="Leave the title out, or leave --url out.")
        with Spinner("Reading the page"):
            one = post_json("/links", {"url": url, **for_goal}, _LINK_SECONDS)
    elif title is None:
        raise CallerMistake("There is nothing to keep.", hint="Give a title and a text, or a link with --url.")
    else:
        one = post_json("/notes", {"title": title, "content": text, **for_goal})
    kept = f"Kept as {one['noteId']}: {clean(str(one['title']))}."
    said = _describe_page(one) if url is not None else ""
    print_outcome(one, " ".join(filter(None, (kept, said, _describe_offer(one)))), json=json)


@app.command()
def move(note: Note, goal: ToGoal = None, json: Json = False) -> None:
    """Put a note to a goal, or to none."""
    one = post_json(f"/notes/{quote(note, safe='')}/move", {"goal": goal})
    place = "It belongs to no goal now." if one["goalId"] is None else f"It belongs to {one['goalId']} now."
    print_outcome(one, f"{clean(str(one['title']))}: {place}", json=json)


@app.command()
def delete(note: Note, json: Json = False) -> None:
    """Delete a note for good."""
    one = post_json(f"/notes/{quote(note, safe='')}/delete", {})
    print_outcome(one, f"Deleted: {clean(str(one['title']))}.", json=json)


def _find(goal: str | None, words: str, limit: int, before: str | None) -> JsonObject:
    given = {"goal": goal, "before": before}
    return get_json("/notes", limit=limit, q=words, **{name: one for name, one in given.items() if one is not None})


def _print_found(found: JsonObject, empty: str, *, json: bool) -> None:
    rows = [
        (str(one["noteId"]), str(one["updatedAt"])[:16], _mark(one), clean(str(one["title"])))
        for one in cast("list[JsonObject]", found["notes"])
    ]
    rows += [
        (clean(str(one["path"])), "", "Markdown", clean(str(one["title"])))
        for one in cast("list[JsonObject]", found["markdown"])
    ]
    print_rows(found, ("NOTE", "CHANGED", "", "TITLE"), rows, empty, json=json)
    if json:
        return
    if found.get("trouble"):
        print_line(clean(str(found["trouble"])))
    if found["before"] is not None:
        print_line(f"There may be more: --before {found['before']}")


def _mark(one: JsonObject) -> str:
    words = ["" if one["goalId"] is None else "goal", "from outside" if one["trust"] == "untrusted" else ""]
    return ", ".join(filter(None, words))


def _describe_page(one: JsonObject) -> str:
    """What came of reading the page: the part after the link."""
    return clean(str(one["content"]).split("\n\n")[1]) if "\n\n" in str(one["content"]) else ""


def _describe_offer(one: JsonObject) -> str:
    offered = one.get("suggestedGoal")
    if not isinstance(offered, dict):
        return ""
    goal = cast("JsonObject", offered)
    return f"Fits your goal “{clean(str(goal['title']))}”: annabelle notes move {one['noteId']} {goal['goalId']}"
