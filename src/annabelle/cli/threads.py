"""`annabelle threads`: reads and searches conversations, and tries again what ended in an error."""

from __future__ import annotations

from typing import Annotated, Final, cast
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import get_json, get_rows, post_json
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_json, print_line, print_outcome, print_rows
from annabelle.core.tools import JsonObject

Thread = Annotated[str, typer.Argument(metavar="THREAD", help="Id of a conversation, as annabelle threads lists it.")]
Error = Annotated[str, typer.Argument(metavar="MESSAGE", help="Id of the error, as annabelle threads show prints it.")]
Words = Annotated[list[str], typer.Argument(metavar="WORDS", help="What has to be in it, whatever the case.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100, help="At most so many.")]
Before = Annotated[int | None, typer.Option("--before", min=0, help="Only what is before this position.")]
_LARGEST: Final = 2**63 - 1
_MARKS: Final = {"in_progress": "…", "success": "✓", "failure": "✗"}
_SPEAKERS: Final = {"user": "you", "command": "you", "agent": "Annabelle", "error": "error"}

app = command_app("Read and search your conversations, and try again what ended in an error.")


@run_by_default(app)
@app.command("list")
def list_threads(json: Json = False) -> None:
    """List your conversations, the one used last first."""
    found = get_rows("/threads", "threads")
    rows = [
        (str(one["id"]), clean(f"{one['channel']} {one['chatId']}"), str(one["agentId"]), str(one["updatedAt"])[:16])
        for one in found
    ]
    empty = "Nothing was said yet. Begin with: annabelle chat"
    print_rows({"threads": found}, ("THREAD", "CHAT", "AGENT", "LAST USED"), rows, empty, json=json)


@app.command()
def show(thread: Thread, before: Before = None, limit: Limit = 50, json: Json = False) -> None:
    """Print the end of a conversation, with the tool calls, or what is before a position."""
    found = get_rows(f"/threads/{_quote(thread)}/messages", "messages", before=before or _LARGEST, limit=limit)
    if json:
        print_json({"messages": found})
        return
    for one in found:
        print_line(clean(_describe(one)))
    messages = [one for one in found if one["type"] == "text"]
    if len(messages) == limit:
        print_line(f"What is before: annabelle threads show {thread} --before {messages[0]['position']}")


@app.command()
def search(words: Words, before: Before = None, limit: Limit = 20, json: Json = False) -> None:
    """Find what was said in all your conversations, newest first."""
    query: dict[str, str | int | float] = {"q": " ".join(words), "limit": limit}
    answer = get_json("/threads/search", **query if before is None else query | {"before": before})
    found = cast("list[JsonObject]", answer["messages"])
    rows = [
        (str(one["createdAt"])[:16], str(one["threadId"]), str(one["position"]), clean(str(one["excerpt"])))
        for one in found
    ]
    more = answer.get("moreBefore")
    empty = "Nothing was found." if more is None else f"Nothing was found yet. Look further back: --before {more}"
    print_rows(answer, ("SAID", "THREAD", "POSITION", ""), rows, empty, json=json)
    if found and more is not None and not json:
        print_line(f"There may be more: --before {more}")


@app.command()
def retry(thread: Thread, message: Error, json: Json = False) -> None:
    """Try again what ended in an error."""
    progress = post_json(f"/threads/{_quote(thread)}/messages/{_quote(message)}/retry", {})
    again = " already" if progress["duplicate"] else ""
    print_outcome(progress, f"It is being tried again{again}: {progress['messageId']}", json=json)


@app.command()
def dismiss(thread: Thread, message: Error, json: Json = False) -> None:
    """Put an error aside, as seen."""
    answer = post_json(f"/threads/{_quote(thread)}/messages/{_quote(message)}/dismiss", {})
    print_outcome(answer, "The error is marked as seen.", json=json)


def _describe(one: JsonObject) -> str:
    metadata = cast("JsonObject", one["metadata"])
    if one["type"] == "tool":
        progress = f" ({metadata['progress']})" if metadata.get("progress") else ""
        return f"  {_MARKS[str(metadata['status'])]} {one['text']}{progress}"
    speaker = _SPEAKERS.get(str(one["source"]), str(one["source"]).replace("_", " "))
    lines = [f"{str(one['createdAt'])[:16]} {speaker}: {one['text']}"]
    if not one["processed"]:
        lines.append("  (waits in line)")
    if one["source"] == "error":
        lines.append(f"  {_describe_error(one, metadata)}")
    return "\n".join(lines)


def _describe_error(one: JsonObject, metadata: JsonObject) -> str:
    if metadata.get("retried_as"):
        return "(was tried again)"
    if metadata.get("dismissed"):
        return "(seen)"
    retry_hint = f"annabelle threads retry {one['threadId']} {one['id']}"
    return f"(try again: {retry_hint})" if metadata.get("retryable") else f"({one['id']}; trying again cannot help)"


def _quote(text: str) -> str:
    return quote(text, safe="")
