"""Memory commands for facts: `list`, `show`, `why`, `add`, `edit`, `rm` and `bring-back`."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from annabelle.cli.memory.client import (
    Agent,
    OfCategory,
    call_memory_tool,
    format_day,
    format_moment,
    print_answer as show_answer,
    print_fields,
    require_agent,
    rows_of,
    structured,
    to_one_line,
)
from annabelle.cli.options import Json
from annabelle.cli.output import print_json, print_line, print_rows
from annabelle.cli.terminal_input import edit_text
from annabelle.core.errors import CallerMistake
from annabelle.core.tools import JsonObject
from annabelle.core.trust import FactCategory

MOST = 2**53  # larger than any row number
FactId = Annotated[
    int, typer.Argument(metavar="FACT", min=1, max=MOST, help="Number of the fact, as `list` and `search` show it.")
]


def list_facts(
    category: OfCategory = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="How many at most.")] = 50,
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that were corrected, merged or deleted.")
    ] = False,
    before: Annotated[
        int | None, typer.Option("--before", min=1, max=MOST, help="Only facts older than this one, to page on.")
    ] = None,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """List the facts, newest first."""
    found = call_memory_tool(
        "list_facts", category=category, limit=limit, include_retired=everything, before_id=before, agent_id=agent
    )
    rows = [
        (
            str(row["id"]),
            str(row["category"]),
            format_day(row["valid_from"]),
            _describe_state(row),
            to_one_line(row["fact"]),
        )
        for row in rows_of(found, "facts")
    ]
    narrowed = any(choice is not None for choice in (before, category, agent))
    empty = "No facts." if narrowed else 'No facts yet. Tell Annabelle something, or: annabelle memory add "…"'
    print_rows(structured(found), ("FACT", "CATEGORY", "SINCE", "STATE", "WHAT"), rows, empty, json=json)
    if structured(found).get("more") and not json:
        print_line(f"There are more: the same with --before {structured(found).get('next_before_id')}")


def show(fact_id: FactId, agent: Agent = None, json: Json = False) -> None:
    """Show one fact with all that is known about it."""
    found = call_memory_tool("explain_fact", fact_id=fact_id, agent_id=agent)
    fact = cast("JsonObject", structured(found)["fact"])
    origin = cast("JsonObject", structured(found)["source"])
    if json:
        print_json({**fact, "origin": origin})
        return
    fields = [
        ("fact", str(fact["id"])),
        ("text", to_one_line(fact["fact"], 4000)),
        ("category", str(fact["category"])),
        ("state", _describe_state(fact)),
        ("trust", _describe_trust(fact)),
        ("confidence", f"{float(str(fact['confidence'])):g}"),
        ("holds from", format_moment(fact["valid_from"])),
        ("holds until", format_moment(fact["valid_until"])),
        ("learnt", format_moment(fact["created_at"])),
        ("renewed", format_moment(fact["updated_at"])),
        ("source", to_one_line(fact["source"])),
        ("quote", to_one_line(origin.get("quote"), 1000)),
        *((name, to_one_line(origin.get(f"{name}_id"))) for name in ("conversation", "message", "thread")),
        ("channel", to_one_line(origin.get("channel"))),
        ("replaced by", str(fact["superseded_by"] or "")),
    ]
    print_fields([(name, value) for name, value in fields if value])


def why(fact_id: FactId, agent: Agent = None, json: Json = False) -> None:
    """Tell how a fact came to be known: what was said, where, when, and what it replaced."""
    show_answer(call_memory_tool("explain_fact", fact_id=fact_id, agent_id=agent), json=json)


def add(
    fact: Annotated[str, typer.Argument(help="A short sentence that makes sense by itself.")],
    category: Annotated[FactCategory, typer.Option("--category", "-c", help="What kind of fact it is.")] = "background",
    replaces: Annotated[
        int | None, typer.Option("--replaces", min=1, max=MOST, help="The fact this one corrects.")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", help="Since when it holds, as in 2026-01-31.")] = None,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Add a fact."""
    require_agent(agent)
    stored = call_memory_tool(
        "store_fact",
        fact=fact,
        category=category,
        source="added in the terminal",
        replaces=replaces,
        valid_from=since,
        agent_id=agent,
    )
    show_answer(stored, json=json)


def edit(
    fact_id: FactId,
    fact: Annotated[str | None, typer.Argument(help="The new words; without them your editor opens.")] = None,
    category: Annotated[
        FactCategory | None, typer.Option("--category", "-c", help="The new category; alone, the words stay.")
    ] = None,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Correct a fact; the old words stay as history."""
    if fact is None:
        words = _fetch_text(fact_id, agent)
        fact = edit_text(words) if category is None else words
    if not fact.strip():
        raise CallerMistake(
            "The fact is empty. Nothing was changed.", hint=f"To delete it: annabelle memory rm {fact_id}"
        )
    show_answer(
        call_memory_tool("update_fact", fact_id=fact_id, fact=fact, category=category, agent_id=agent), json=json
    )


def rm(fact_id: FactId, agent: Agent = None, json: Json = False) -> None:
    """Delete a fact; it stays in the history until it is forgotten."""
    done = call_memory_tool("delete_fact", fact_id=fact_id, agent_id=agent)
    if json:
        print_json(structured(done))
        return
    if structured(done)["outcome"] == "deleted":
        print_line(f"Deleted. To undo it: annabelle memory bring-back {fact_id}")
    else:
        print_line("It was history already.")
    print_line(f"To remove every trace of it: annabelle forget --fact {fact_id}")


def bring_back(
    fact_id: FactId,
    keep: Annotated[bool, typer.Option("--keep", help="Keep what took its place as well: both are true.")] = False,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Make a deleted or corrected fact current again; what took its place becomes history."""
    show_answer(call_memory_tool("restore_fact", fact_id=fact_id, keep_successor=keep, agent_id=agent), json=json)


def _fetch_text(fact_id: int, agent: str | None) -> str:
    found = structured(call_memory_tool("explain_fact", fact_id=fact_id, agent_id=agent))
    return str(cast("JsonObject", found["fact"])["fact"])


def _describe_state(row: JsonObject) -> str:
    if row.get("retired_because"):
        return str(row["retired_because"])
    return "untrusted" if row.get("trust") == "untrusted" else "current"


def _describe_trust(row: JsonObject) -> str:
    tools = ", ".join(str(tool) for tool in cast("list[object]", row.get("learnt_from") or []))
    return f"{row['trust']}, learnt from {to_one_line(tools)}" if tools else str(row["trust"])
