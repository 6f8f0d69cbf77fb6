"""Memory lookup commands: `search`, `timeline` and `stats`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, cast

import typer

from annabelle.cli.memory.client import (
    Agent,
    OfCategory,
    call_memory_tool,
    format_day,
    format_moment,
    print_fields,
    rows_of,
    structured,
    to_one_line,
)
from annabelle.cli.options import Json
from annabelle.cli.output import print_json, print_line, print_rows, print_table
from annabelle.core.messages import now
from annabelle.core.result_text import format_size
from annabelle.core.tools import JsonObject, ToolResult

_TIERS = {"hybrid": "by meaning and words", "text": "by words", "substring": "as written"}
_KINDS = {
    "facts": "fact",
    "conversations": "talk",
    "profile_changes": "profile",
    "contacts": "contact",
    "projects": "project",
}
_DAYS = 7


def search(
    query: Annotated[str, typer.Argument(help="A question or a few words, in any language.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50, help="How many of each at most.")] = 5,
    facts_only: Annotated[bool, typer.Option("--facts", help="Leave conversations out.")] = False,
    category: OfCategory = None,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Search facts and conversations by meaning and by words."""
    found = call_memory_tool(
        "retrieve_memories",
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
                (
                    str(row["id"]),
                    _format_score(row),
                    format_day(row["updated_at"]),
                    _describe_source(row, "source", 30),
                    to_one_line(row["fact"]),
                )
                for row in facts
            ],
        )
    if turns:
        print_line("" if facts else "Nothing among the facts. Said earlier:")
        print_table(
            ("TALK", "SCORE", "WHEN", "WHO", "WHAT"),
            [
                (
                    str(row["id"]),
                    _format_score(row),
                    format_day(row["said_at"]),
                    _describe_source(row, "speaker", 20),
                    _describe_exchange(row),
                )
                for row in turns
            ],
        )
    print_line(f"Found {_describe_tiers(found)}." if facts or turns else "Nothing is known about it.")


def timeline(
    since: Annotated[
        str | None, typer.Argument(help="From this day or time on, as in 2026-01-31; by default the last week.")
    ] = None,
    until: Annotated[str | None, typer.Argument(help="Up to this day or time; by default until now.")] = None,
    words: Annotated[str | None, typer.Option("--about", help="Only what has this text in it.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="How many events at most.")] = 50,
    cursor: Annotated[str | None, typer.Option("--cursor", help="Where the last answer ended, to page on.")] = None,
    agent: Agent = None,
    json: Json = False,
) -> None:
    """Show what was learnt, said and changed, and when."""
    begin = since or f"{now() - timedelta(days=_DAYS):%Y-%m-%d}"
    found = call_memory_tool(
        "query_timeline", date_from=begin, date_to=until, query=words, limit=limit, cursor=cursor, agent_id=agent
    )
    rows = [_event_row(event) for event in rows_of(found, "events")]
    empty = "Nothing happened then." if since else f"Nothing happened in the last {_DAYS} days."
    print_rows(structured(found), ("WHEN", "WHAT", "", "TEXT"), rows, empty, json=json)
    if structured(found).get("next") and not json:
        print_line(f"There is more: the same with --cursor {structured(found)['next']}")


def stats(agent: Agent = None, json: Json = False) -> None:
    """Show how much is remembered."""
    found = call_memory_tool("get_memory_stats", agent_id=agent)
    data = structured(found)
    if json:
        print_json(data)
        return
    rows = [
        (str(row["category"]), str(row["current"]), str(row["retired"]), str(row["untrusted"]))
        for row in rows_of(found, "facts")
    ]
    if rows:
        print_table(("CATEGORY", "FACTS", "HISTORY", "UNTRUSTED"), rows)
        print_line("")
    vectors = cast("JsonObject", data["vectors"])
    to_come = f", {vectors['missing']} to come" if vectors["missing"] else ""
    print_fields(
        [
            *([] if rows else [("facts", "0")]),
            ("conversations", str(data["conversations"])),
            ("contacts", str(data["contacts"])),
            ("projects", str(data["projects"])),
            ("profile", f"version {data['profile_version']}" if data["profile_version"] else "empty"),
            ("found by meaning", f"{vectors['stored']}{to_come} ({vectors['model']})"),
            ("database", format_size(float(str(data["database_bytes"] or 0)))),
            ("last backup", format_moment(data["last_backup"]) or "none"),
        ]
    )


def _describe_tiers(found: ToolResult) -> str:
    """How the shown rows were found; empty lists do not count."""
    tiers = [structured(found)[f"{name}_tier"] for name in ("facts", "conversations") if rows_of(found, name)]
    return " and ".join(dict.fromkeys(_TIERS[str(tier)] for tier in tiers))


def _event_row(event: JsonObject) -> tuple[str, str, str, str]:
    text, after = to_one_line(event["text"]), to_one_line(event["after"])
    mark = " (untrusted)" if event["trust"] == "untrusted" else ""
    kind = _KINDS.get(str(event["category"]), str(event["category"]))
    return format_moment(event["at"]), kind, str(event["what"]), f"{text}{f' → {after}' if after else ''}{mark}"


def _format_score(row: JsonObject) -> str:
    return f"{float(str(row['score'])):.2f}"


def _describe_source(row: JsonObject, name: str, most: int) -> str:
    source = to_one_line(row.get(name), most) or "-"
    return f"{source} (untrusted)" if row.get("trust") == "untrusted" else source


def _describe_exchange(row: JsonObject) -> str:
    answer = to_one_line(row.get("agent_response"), 120)
    return f"{to_one_line(row['user_message'], 120)}{f' → {answer}' if answer else ''}"
