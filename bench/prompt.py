"""How many tokens a request has: one question with all built-in tools there, early and late in a conversation, and a
task.

Beside each figure stands what the same request would be with all tools and the whole history in it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from measure import ROOT, Report, built_in_tools

sys.path.insert(0, str(ROOT / "tests"))

from annabelle.llm.openai_format import format_tools
from prompt_house import FULL, USUAL, House, house, weight
from prompt_talk import Exchange, said

CYCLES = 10
WORKSPACE_TOKENS = 5_000
Body = Mapping[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=500, help="Length of the conversation; measured at 1, 50 and here")
    parser.add_argument("--data", help="Taken for the sake of the other benchmarks; nothing is read from it")
    last = parser.parse_args().turns
    report = Report("prompt")
    tools = list(built_in_tools().tools)
    everything = format_tools(tools)
    report.figures["tools_there"] = len(everything)
    for name, furniture in (("", USUAL), ("full_", FULL)):
        with tempfile.TemporaryDirectory() as folder, house(Path(folder), furniture, tools) as home:
            _talk(report, home, last, name, everything)
            if not name:
                _task(report, home)
    report.within("whole request at turn 1, tokens", report.figures["turn_1_tokens"], 1_500)
    for turn in sorted({50, last} - {1}):
        report.within(f"whole request at turn {turn}, tokens", report.figures[f"turn_{turn}_tokens"], 3_000)
    report.within("tools in a request", max(v for k, v in report.figures.items() if k.endswith("_tools")), 25)
    report.within(
        "workspace in each request of a task, tokens", report.figures["task_workspace_most"], WORKSPACE_TOKENS
    )
    report.within("workspaces in each request of a task", report.figures["task_workspaces_in_a_request"], 1)
    report.print()


def _talk(report: Report, home: House, last: int, prefix: str, everything: Sequence[object]) -> None:
    whole: list[object] = []
    for turn in range(1, last + 1):
        if turn in (1, 50, last):
            _measure(report, f"{prefix}turn_{turn}", home.ask(), whole, everything)
        else:
            home.say(said(turn))
            whole += _as_said(said(turn))


def _measure(report: Report, name: str, body: Body, whole: Sequence[object], everything: Sequence[object]) -> None:
    figures = report.figures
    tools = body.get("tools", [])
    figures[f"{name}_tokens"] = weight(body)
    figures[f"{name}_tool_tokens"] = weight(tools)
    figures[f"{name}_message_tokens"] = weight(body["messages"])
    figures[f"{name}_tools"] = len(tools)
    figures[f"{name}_messages"] = len(body["messages"])
    system, *_, last = body["messages"]
    naive = {**body, "tools": everything, "messages": [system, *whole, last]}
    figures[f"{name}_tokens_with_everything"] = weight(naive)
    report.ratios[f"{name}_to_everything"] = figures[f"{name}_tokens"] / weight(naive)
    offered = [tool["function"]["name"] for tool in tools]
    print(f"{name}: {figures[f'{name}_tokens']:.0f} tokens, {len(tools)} tools: {', '.join(offered)}")
    if "filer_list_files" not in offered:
        raise SystemExit("the tool that answers the question was not offered")


def _task(report: Report, home: House) -> None:
    """Ten requests with a file of 6,000 tokens on the desk: it is in each of them, once."""
    bodies = home.work(CYCLES, "A line of the big file that is long enough to count.\n" * 460)
    sections = [_workspaces(body) for body in bodies]
    sizes = [sum(map(weight, found)) for found in sections]
    after = sizes[1:]  # the first request comes before the file is opened
    report.figures |= {
        "task_requests": len(bodies),
        "task_workspace_least": min(after),
        "task_workspace_most": max(after),
        "task_workspace_growth": after[-1] - after[0],
        "task_workspaces_in_a_request": max(map(len, sections)),
        "task_tools": max(len(body.get("tools", [])) for body in bodies),
        "task_first_tokens": weight(bodies[1]),
        "task_last_tokens": weight(bodies[-1]),
        # What a workspace costs that is written into the history with every cycle.
        "task_last_tokens_with_copies": weight(bodies[-1]) + sum(after[:-1]),
    }
    report.ratios["task_to_copies"] = (
        report.figures["task_last_tokens"] / report.figures["task_last_tokens_with_copies"]
    )


def _workspaces(body: Body) -> list[str]:
    texts = [str(message.get("content")) for message in body["messages"]]
    return [found for text in texts for found in re.findall(r"<workspace>\n(.*?)\n</workspace>", text, re.DOTALL)]


def _as_said(exchange: Exchange) -> list[object]:
    """An exchange as it would stand in a request that leaves nothing out."""
    call = {"id": "call_0", "type": "function", "function": {"name": exchange.tool, "arguments": "{}"}}
    used = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0", "content": exchange.result},
    ]
    return [
        {"role": "user", "content": exchange.text},
        *(used if exchange.tool else []),
        {"role": "assistant", "content": exchange.answer},
    ]


if __name__ == "__main__":
    main()
