"""Facts by hand: `list`, `show`, `why`, `add`, `edit`, `rm` and `bring-back`."""

from __future__ import annotations

from typing import Annotated

import typer

from annabelle.cli.editor import edited
from annabelle.cli.memory.answers import Agent, day, one_line, rows_of, show, structured
from annabelle.cli.options import Json
from annabelle.cli.output import print_json, print_line, print_table
from annabelle.cli.tool_calls import use_tool
from annabelle.core.errors import CallerMistake
from annabelle.core.tools import JsonObject

FactId = Annotated[int, typer.Argument(min=1, help="Number of the fact, as `list` and `search` show it.")]
Category = Annotated[
    str | None,
    typer.Option("--category", "-c", help="preference, background, pattern, project, contact or decision."),
]


def list_facts(
    category: Category = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="How many at most.")] = 50,
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that were corrected, merged or deleted.")
    ] = False,
    before: Annotated[int | None, typer.Option("--before", help="Only facts older than this one, to page on.")] = None,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """List the facts, newest first."""
    found = use_tool(
        "memory_list_facts",
        category=category,
        limit=limit,
        include_retired=everything,
        before_id=before,
        agent_id=agent,
    )
    if json:
        print_json(structured(found))
        return
    rows = rows_of(found, "facts")
    if not rows:
        print_line('No facts yet. Tell Annabelle something, or: annabelle memory add "…"')
        return
    print_table(
        ("FACT", "CATEGORY", "SINCE", "STATE", "WHAT"),
        [
            (str(row["id"]), str(row["category"]), day(row["valid_from"]), _state(row), one_line(row["fact"]))
            for row in rows
        ],
    )
    if structured(found).get("more"):
        print_line(f"There are more: annabelle memory list --before {structured(found).get('next_before_id')}")


def show_fact(fact_id: FactId, agent: Agent = None, json: Json = False) -> None:
    """Show one fact."""
    found = use_tool("memory_explain_fact", fact_id=fact_id, agent_id=agent)
    fact = structured(found).get("fact")
    if json:
        print_json(fact)
        return
    assert isinstance(fact, dict), "the answer names its fact"
    for name, value in fact.items():  # pyright: ignore[reportUnknownVariableType]
        if value not in (None, "", []):
            print_line(f"{str(name).replace('_', ' '):<18}{one_line(value, 2000)}")  # pyright: ignore[reportUnknownArgumentType]


def why(fact_id: FactId, agent: Agent = None, json: Json = False) -> None:
    """Tell how a fact came to be known: what was said, where, when, and what it replaced."""
    show(use_tool("memory_explain_fact", fact_id=fact_id, agent_id=agent), json=json)


def add(
    fact: Annotated[str, typer.Argument(help="A short sentence that makes sense by itself.")],
    category: Annotated[
        str,
        typer.Option("--category", "-c", help="preference, background, pattern, project, contact or decision."),
    ] = "background",
    replaces: Annotated[int | None, typer.Option("--replaces", help="The fact this one corrects.")] = None,
    since: Annotated[str | None, typer.Option("--since", help="Since when it holds, as in 2026-01-31.")] = None,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Add a fact."""
    show(
        use_tool(
            "memory_store_fact",
            fact=fact,
            category=category,
            source="added in the terminal",
            replaces=replaces,
            valid_from=since,
            agent_id=agent,
        ),
        json=json,
    )


def edit(
    fact_id: FactId,
    fact: Annotated[str | None, typer.Argument(help="The new words; without them your editor opens.")] = None,
    category: Category = None,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Correct a fact; the old words stay as history."""
    if fact is None:
        fact = edited(_words_of(fact_id, agent)).strip() if category is None else _words_of(fact_id, agent)
    if not fact:
        raise CallerMistake(
            "The fact is empty. Nothing was changed.", hint=f"To delete it: annabelle memory rm {fact_id}"
        )
    show(use_tool("memory_update_fact", fact_id=fact_id, fact=fact, category=category, agent_id=agent), json=json)


def rm(fact_id: FactId, agent: Agent = None, json: Json = False) -> None:
    """Delete a fact; it stays in the history until it is forgotten."""
    done = use_tool("memory_delete_fact", fact_id=fact_id, agent_id=agent)
    if json:
        print_json(structured(done))
        return
    print_line(f"Deleted. To undo it: annabelle memory bring-back {fact_id}")
    print_line(f"To remove every trace of it: annabelle forget --fact {fact_id}")


def bring_back(fact_id: FactId, agent: Agent = None, json: Json = False) -> None:
    """Make a deleted or corrected fact current again."""
    show(use_tool("memory_restore_fact", fact_id=fact_id, agent_id=agent), json=json)


def _words_of(fact_id: int, agent: str | None) -> str:
    fact = structured(use_tool("memory_explain_fact", fact_id=fact_id, agent_id=agent)).get("fact")
    return str(fact["fact"]) if isinstance(fact, dict) else ""  # pyright: ignore[reportUnknownArgumentType]


def _state(row: JsonObject) -> str:
    if row.get("retired_because"):
        return str(row["retired_because"])
    return "untrusted" if row.get("trust") == "untrusted" else "current"
