"""How often the tool a question needs is among those that are sent: ours beside BM25 and vectors alone.

    selection.py --data DIR

Reads every *.jsonl and *.jsonl.gz in DIR whose lines have `tools` and `queries`: tools have an id, a name, a
description and may have parameters (a JSON schema); queries have the ids of the tools that answer them (`gold`). Each
line is a home of its own with these tools and no others, so that no core tool is counted. What is measured is the
selection as it is sent: its best five, and all of it, which is never more than the cap.

Lines with `user` and `tool` are requests for the built-in tools, as in `first_hour`. They are measured with all tools,
core tools included: the right one first, among five, and sent.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from annabelle.core.contract import ToolList, TurnBrief
from annabelle.core.ids import new_id
from annabelle.core.settings import Settings
from annabelle.core.tools import ToolSpec
from annabelle.embeddings import EmbeddingConfig, make_embedder
from annabelle.thinker.selection.hybrid_selector import HybridSelector
from annabelle.thinker.selection.selection import SelectionRequest
from measure import Report, built_in_tools, data_arguments, median, percentile
from recall_baselines import Baselines

OURS = "ours"
FIRST, ALL = 5, 25
GOALS = {"metatool": (0.78, 0.91), "bfcl_live": (0.885, 0.955)}
"""What must be reached within the first five and within all, by the name of the file."""
GOAL_MS = 3.0


def pools(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]):
        blob = file.read_bytes()
        for line in (gzip.decompress(blob) if file.suffix == ".gz" else blob).splitlines():
            row = json.loads(line)
            if isinstance(row, dict) and "tools" in row and "queries" in row:
                yield file.name.split(".")[0], row


def tool_list(row: dict[str, Any]) -> ToolList:
    tools = [
        ToolSpec(
            name=tool["id"],
            server="",
            original_name=tool["name"],
            description=tool["description"],
            input_schema=tool.get("parameters") or {"type": "object"},
        )
        for tool in row["tools"]
    ]
    return ToolList(version=row.get("pool", "pool"), tools=tuple(tools))


def brief(text: str) -> TurnBrief:
    return TurnBrief(
        message_id=new_id("msg"), thread_id="thr_bench", trace_id=new_id("tr"), channel="bench", chat_id="1",
        sender_id="bench", text=text,
    )  # fmt: skip


def groups(name: str, gold: set[str]) -> tuple[str, ...]:
    return name, f"{name}: {'one tool' if len(gold) == 1 else 'several tools'}"


class Shares:
    """Of the tools a question needs, how many were among the first five and among all; by method and kind."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)

    def add(self, groups: tuple[str, ...], method: str, first: set[str], everything: set[str], gold: set[str]) -> None:
        row = len(gold & first) / len(gold), len(gold & everything) / len(gold)
        for group in groups:
            self._rows[group, method].append(row)

    def figures(self) -> Iterator[tuple[str, str, float, float, int]]:
        for (group, method), rows in sorted(self._rows.items()):
            first, everything = (sum(column) / len(rows) for column in zip(*rows, strict=True))
            yield group, method, first, everything, len(rows)


async def ready_selector(tools: ToolList, provider: str) -> HybridSelector:
    """Its first rounds make the index and the vectors of the tools, which a turn finds ready."""
    selector = HybridSelector(Settings(), make_embedder(EmbeddingConfig(provider=provider), None), 0.4)  # type: ignore[arg-type]
    for warm in range(2):
        await selector.select(SelectionRequest(brief("warm up"), f"what is ready {warm}", tools))
        await asyncio.sleep(1)
    return selector


async def measure(name: str, row: dict[str, Any], provider: str, shares: Shares, report: Report) -> None:
    tools = tool_list(row)
    texts = [f"{tool.original_name}: {tool.description}" for tool in tools.tools]
    baselines = Baselines(texts, [tool.name for tool in tools.tools])
    selector = await ready_selector(tools, provider)
    known = {tool.name for tool in tools.tools}
    wall: list[float] = []
    cpu: list[float] = []
    sent: list[int] = []
    for query in row["queries"]:
        gold = known.intersection(query["gold"])
        if not gold:
            continue
        ask = SelectionRequest(brief(query["query"]), query["query"], tools)
        began = time.perf_counter(), time.process_time()
        selection = await selector.select(ask)
        wall.append((time.perf_counter() - began[0]) * 1000)
        cpu.append((time.process_time() - began[1]) * 1000)
        names = set(selection.names())
        sent.append(len(names))
        if selection.report is None or len(names) > ALL:
            raise SystemExit(f"{len(names)} tools were sent for {query['query']!r}.")
        best = {tool for tool, _ in selection.report.top[:FIRST]} & names
        shares.add(groups(name, gold), OURS, best, names, gold)
    # Afterwards, so that they do not disturb the times of ours.
    for query in row["queries"]:
        gold = known.intersection(query["gold"])
        for method, order in (await baselines.ask(query["query"], ALL)).items() if gold else ():
            shares.add(groups(name, gold), method, set(order[:FIRST]), set(order), gold)
    report.figures |= {
        f"{name} | tools": float(len(tools.tools)),
        f"{name} | questions": float(len(wall)),
        f"{name} | tools sent on average": sum(sent) / len(sent),
        f"{name} | p50 ms": percentile(wall, 0.5),
        f"{name} | p95 ms": percentile(wall, 0.95),
        f"{name} | p50 cpu ms": percentile(cpu, 0.5),
    }


def requests(folder: Path) -> list[dict[str, Any]]:
    lines = [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text(encoding="utf-8").splitlines()]
    rows = [json.loads(line) for line in lines if line.strip()]
    return [row for row in rows if "user" in row and row.get("tool") and "first" not in row]


async def measure_requests(rows: list[dict[str, Any]], provider: str, report: Report) -> None:
    tools = built_in_tools()
    selector = await ready_selector(tools, provider)
    places: list[tuple[bool, bool, bool]] = []
    sent: list[int] = []
    wall: list[float] = []
    for row in rows:
        right = {row["tool"], *row.get("also", [])}
        began = time.perf_counter()
        selection = await selector.select(SelectionRequest(brief(row["user"]), row["user"], tools))
        wall.append((time.perf_counter() - began) * 1000)
        best = [] if selection.report is None else [name for name, _ in selection.report.top]
        names = selection.names()
        places.append((bool(right & set(best[:1])), bool(right & set(best[:FIRST])), bool(right & set(names))))
        sent.append(len(names))
    first, five, all_sent = (sum(column) / len(places) for column in zip(*places, strict=True))
    report.figures |= {"requests": len(rows), "requests | tools": len(tools.tools), "requests | p50 ms": median(wall)}
    report.within("requests: right tool first", first, 0.93, at_least=True)
    report.within("requests: among five", five, 0.985, at_least=True)
    report.within("requests: sent", all_sent, 0.985, at_least=True)
    report.within("requests: tools sent on average", sum(sent) / len(sent), 9.0)


async def run(folder: Path, provider: str) -> Report:
    report, shares = Report("select"), Shares()
    asked = requests(folder)
    if asked:
        await measure_requests(asked, provider, report)
    for name, row in pools(folder):
        await measure(name, row, provider, shares, report)
    best_other: dict[str, float] = {}
    for group, method, first, everything, count in shares.figures():
        report.figures |= {f"{group} | {method} | first 5": first, f"{group} | {method} | all": everything}
        print(f"{group:28} {method:8} first 5 {first:.3f}  all {everything:.3f}  ({count})")
        if method != OURS:
            best_other[group] = max(best_other.get(group, 0.0), first)
    if not best_other and not asked:
        raise SystemExit(f"No file in {folder} has lines with tools and queries.")
    for group, best in best_other.items():
        if best:
            report.ratios[f"{group} | first 5 to the best baseline"] = (
                report.figures[f"{group} | {OURS} | first 5"] / best
            )
    for name, (first, everything) in GOALS.items():
        if f"{name} | {OURS} | all" in report.figures and provider == "embedded":
            report.within(f"{name}: first 5", report.figures[f"{name} | {OURS} | first 5"], first, at_least=True)
            report.within(f"{name}: all", report.figures[f"{name} | {OURS} | all"], everything, at_least=True)
            report.within_time(f"{name}: p50", report.figures[f"{name} | p50 ms"], GOAL_MS)
    return report


def main() -> None:
    arguments = data_arguments(__doc__, "tools and questions")
    asyncio.run(run(arguments.data, arguments.provider)).print()


if __name__ == "__main__":
    main()
