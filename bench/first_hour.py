"""Everyday requests to the whole product as it comes: an empty home, no key, no network, the packaged mind.

    first_hour.py --data FILE [--rows N]

Every line of FILE is a request: `user`, the `tool` it wants (null for none), other tools that are `also` right, and
patterns that arguments `must` match. Each is said in a chat of its own; the `turns` of a row are such requests, said
one after the other in one chat. A row with `first` and `answer` is a follow-up and is asked of the packaged mind alone,
with that exchange before it. What was wrong is listed before the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.cli.conversation import Conversation
from annabelle.cli.hub_client import CliHubClient
from annabelle.core.contract import ToolList
from annabelle.core.home import Home
from annabelle.core.ids import new_id
from annabelle.core.tools import ToolSpec
from annabelle.core.turn_view import ApprovalAsked, ReplySent, TextAdded, TextReplaced, ToolStarted
from annabelle.llm.backend import BackendAnswer, ModelQuestion
from annabelle.llm.embedded.engine import make_backend
from annabelle.llm.gguf_models import PACKAGED, find_weights
from measure import Hub, Report, cpu_seconds, percentile, running_hub, wait_for_built_in_tools

SHOWN = re.compile(r"<\||</?\w+_\w+>|\{\s*\"|\b[a-z]+_[a-z]+_[a-z]+\b")
"""Tags, JSON and names of tools, none of which a person should read."""
Row = dict[str, Any]


@dataclass
class Outcome:
    """What came of one request."""

    row: Row
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    text: str = ""
    asked: bool = False
    seconds: float = 0.0
    sign_seconds: float = 0.0
    first_seconds: float = 0.0
    cpu: float = 0.0

    @property
    def right_tool(self) -> bool:
        if self.row["tool"] is None:
            return not self.calls
        return bool(self.calls) and self.calls[0][0] in (self.row["tool"], *self.row.get("also", []))

    @property
    def right(self) -> bool:
        if not self.right_tool or self.row["tool"] is None or self.calls[0][0] != self.row["tool"]:
            return self.right_tool
        arguments = self.calls[0][1]
        return all(_matches(pattern, arguments.get(name, "")) for name, pattern in self.row.get("must", {}).items())


def _matches(pattern: str, value: object) -> bool:
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return re.search(pattern, said, re.IGNORECASE) is not None


async def ask_product(hub: Hub, talk: Conversation, row: Row) -> Outcome:
    """Say it as the terminal does."""
    outcome = Outcome(row)
    before, began = cpu_seconds(hub.tree()), time.perf_counter()
    message_id = await talk.post(row["user"])
    outcome.sign_seconds = time.perf_counter() - began
    async for change in talk.follow(message_id):
        if isinstance(change, (ToolStarted, TextAdded, TextReplaced, ReplySent)) and not outcome.first_seconds:
            outcome.first_seconds = time.perf_counter() - began
        if isinstance(change, ToolStarted):
            outcome.calls.append((change.name, change.arguments))
        elif isinstance(change, TextAdded):
            outcome.text += change.text
        elif isinstance(change, (TextReplaced, ReplySent)):
            outcome.text = change.text
        elif isinstance(change, ApprovalAsked):
            outcome.asked = True
    outcome.seconds = time.perf_counter() - began
    outcome.cpu = cpu_seconds(hub.tree()) - before
    return outcome


async def ask_mind(home: Path, rows: list[Row], tools: list[ToolSpec]) -> list[Outcome]:
    """Follow-ups, with the exchange before them as the row has it."""
    mind, outcomes = make_backend(find_weights(PACKAGED, Home(home))), list[Outcome]()
    for row in rows:
        first, outcome = row["first"], Outcome(row)
        messages: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart(first["user"])])]
        if first["tool"]:
            messages.append(ModelResponse(parts=[ToolCallPart(first["tool"], first.get("arguments") or {}, "1")]))
            messages.append(ModelRequest(parts=[ToolReturnPart(first["tool"], row["answer"], "1")]))
        messages.append(ModelResponse(parts=[TextPart(row["answer"])]))
        messages.append(ModelRequest(parts=[UserPromptPart(row["user"])]))
        began = time.perf_counter()
        async for event in mind.stream(ModelQuestion("first_hour", messages, tools)):
            if isinstance(event, BackendAnswer):
                outcome.calls = [(call.tool_name, call.args_as_dict()) for call in event.response.tool_calls]
                outcome.text = " ".join(part.content for part in event.response.parts if isinstance(part, TextPart))
        outcome.seconds = time.perf_counter() - began
        outcomes.append(outcome)
    await mind.close()
    return outcomes


def report_on(outcomes: list[Outcome], follow_ups: list[Outcome]) -> Report:
    report = Report("first_hour")
    for one in (*outcomes, *follow_ups):
        if not one.right:
            print(
                f"wrong: {one.row['user']!r} wanted {one.row['tool']}: {one.calls or one.text[:120]!r}", file=sys.stderr
            )
    for one in outcomes:
        if SHOWN.search(one.text):
            print(f"shown: {one.row['user']!r}: {one.text[:500]!r}", file=sys.stderr)
    if outcomes:
        none = [one for one in outcomes if one.row["tool"] is None]
        report.figures["rows"] = len(outcomes)
        report.within("right tool, or rightly none", _share(outcomes, "right_tool"), 0.93, at_least=True)
        report.within("arguments right too", _share(outcomes, "right"), 0.85, at_least=True)
        if none:
            report.within("no call where none is wanted", _share(none, "right_tool"), 0.9, at_least=True)
        report.within("answers with tags, JSON or names of tools", sum(bool(SHOWN.search(o.text)) for o in outcomes), 0)
        report.figures["asked for a yes"] = sum(one.asked for one in outcomes)
        report.within("CPU s a request", sum(one.cpu for one in outcomes) / len(outcomes), 4.0)
        report.within("p50 s", percentile([one.seconds for one in outcomes], 0.5), 2.5)
        report.within("s to a sign of work, p50", percentile([one.sign_seconds for one in outcomes], 0.5), 0.3)
        report.within("s to the first words, p50", percentile([one.first_seconds for one in outcomes], 0.5), 1.5)
    if follow_ups:
        report.figures |= {"follow_ups": len(follow_ups), "follow-up tool": _share(follow_ups, "right_tool")}
        report.within("follow-ups right", _share(follow_ups, "right"), 0.8, at_least=True)
    return report


def _share(outcomes: list[Outcome], what: str) -> float:
    return sum(getattr(one, what) for one in outcomes) / len(outcomes)


async def measure(hub: Hub, rows: list[Row]) -> Report:
    async with CliHubClient.for_home(Home(hub.home)) as client:
        chats: list[list[Row]] = [row.get("turns", [row]) for row in rows if "first" not in row]
        outcomes: list[Outcome] = []
        for turns in ([{"user": "hello", "tool": None}], *chats):  # the first answer loads the model
            talk = Conversation(client, new_id("chat"))
            outcomes += [await ask_product(hub, talk, row) for row in turns]
        tools = list(ToolList.model_validate(await client.get("/tools/list")).tools)
    return report_on(outcomes[1:], await ask_mind(hub.home, [row for row in rows if "first" in row], tools))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a file of requests, one JSON object a line")
    parser.add_argument("--rows", type=int, default=None, help="only so many of them")
    arguments = parser.parse_args()
    if not arguments.data.is_file():
        sys.exit(f"{arguments.data} is not a file.")
    rows = [json.loads(line) for line in arguments.data.read_text(encoding="utf-8").splitlines() if line.strip()]
    nobody = {"OLLAMA_BASE_URL": "http://127.0.0.1:9", "LMSTUDIO_BASE_URL": "http://127.0.0.1:9/v1"}
    with tempfile.TemporaryDirectory() as folder, running_hub(Path(folder) / "home", nobody) as hub:
        wait_for_built_in_tools(hub)
        asyncio.run(measure(hub, rows[: arguments.rows])).print()


if __name__ == "__main__":
    main()
