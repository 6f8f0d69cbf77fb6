"""Looking into the memory: `search`, `timeline` and `stats`."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from annabelle.cli.memory.answers import Agent, day, one_line, rows_of, show, structured
from annabelle.cli.options import Json
from annabelle.cli.output import print_json, print_line, print_table
from annabelle.cli.tool_calls import use_tool
from annabelle.core.tools import JsonObject

_TIERS = {"hybrid": "by meaning and words", "text": "by words", "substring": "as written"}


def search(
    query: Annotated[str, typer.Argument(help="A question or a few words, in any language.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50, help="How many of each at most.")] = 5,
    facts_only: Annotated[bool, typer.Option("--facts", help="Leave conversations out.")] = False,
    category: Annotated[str | None, typer.Option("--category", help="Only facts of this category.")] = None,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Search facts and conversations by meaning and by words."""
    found = use_tool(
        "memory_retrieve_memories",
        query=query,
        limit=limit,
        include_conversations=not facts_only,
        category=category,
        agent_id=agent,
    )
    if json:
        print_json(structured(found))
        return
    facts, turns = rows_of(found, "facts"), rows_of(found, "conversations")
    if facts:
        print_table(
            ("FACT", "SCORE", "SINCE", "FROM", "WHAT"),
            [
                (str(row["id"]), _score(row), day(row["updated_at"]), _source(row), one_line(row["fact"]))
                for row in facts
            ],
        )
    if turns:
        print_line("" if facts else "Nothing among the facts. Said earlier:")
        print_table(
            ("SAID", "SCORE", "WHEN", "WHO", "WHAT"),
            [(str(row["id"]), _score(row), day(row["said_at"]), _speaker(row), _exchange(row)) for row in turns],
        )
    if not facts and not turns:
        print_line("Nothing is known about it.")
        return
    tiers = {str(structured(found).get(name) or "") for name in ("facts_tier", "conversations_tier")}
    print_line(f"Found {' and '.join(_TIERS[tier] for tier in sorted(tiers) if tier in _TIERS)}.")


def timeline(
    since: Annotated[str, typer.Argument(help="From this day or time on, as in 2026-01-31.")],
    until: Annotated[str | None, typer.Argument(help="Up to this day or time; by default until now.")] = None,
    words: Annotated[str | None, typer.Option("--about", help="Only what has this text in it.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="How many events at most.")] = 50,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Show what was learnt, said and changed, and when."""
    show(
        use_tool("memory_query_timeline", date_from=since, date_to=until, query=words, limit=limit, agent_id=agent),
        json=json,
    )


def stats(agent: Agent = None, json: Json = False) -> None:
    """Show how much is remembered."""
    found = use_tool("memory_get_memory_stats", agent_id=agent)
    if json:
        print_json(structured(found))
        return
    data = structured(found)
    print_table(
        ("CATEGORY", "FACTS", "HISTORY", "UNTRUSTED"),
        [
            (str(row["category"]), str(row["current"]), str(row["retired"]), str(row["untrusted"]))
            for row in rows_of(found, "facts")
        ],
    )
    vectors = cast("JsonObject", data.get("vectors") or {})
    rest = [
        ("conversations", str(data["conversations"])),
        ("contacts", str(data["contacts"])),
        ("projects", str(data["projects"])),
        ("profile version", str(data["profile_version"])),
        ("found by meaning", f"{vectors.get('stored')} ({vectors.get('model')}), {vectors.get('missing')} to come"),
        ("database", f"{float(str(data['database_bytes'])) / 1e6:.1f} MB"),
        ("last backup", str(data.get("last_backup") or "none")[:16].replace("T", " ")),
    ]
    print_line("")
    for name, value in rest:
        print_line(f"{name:<18}{value}")


def _score(row: JsonObject) -> str:
    return f"{float(str(row['score'])):.2f}"


def _source(row: JsonObject) -> str:
    source = one_line(row.get("source"), 30) or "-"
    return f"{source} (untrusted)" if row.get("trust") == "untrusted" else source


def _speaker(row: JsonObject) -> str:
    who = one_line(row.get("speaker"), 20) or "-"
    return f"{who} (untrusted)" if row.get("trust") == "untrusted" else who


def _exchange(row: JsonObject) -> str:
    answer = one_line(row.get("agent_response"), 120)
    return f"{one_line(row['user_message'], 120)}{f' → {answer}' if answer else ''}"
