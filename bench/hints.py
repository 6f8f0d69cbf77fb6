"""Whether hints save calls: kinds of requests that come again, with hints of what worked before and without.

A scripted model reads the prompt. Where it holds a hint it makes the calls that the hint names; where there is none, or
where they do not do, it tries for each kind of request what a model may try first, and then what works. The turns are
real ones, with the selection of tools among all built-in ones; only the results of tools are made up. Every request has
a conversation of its own, so that the history tells nothing.

The thresholds were chosen with the first set of requests; the second, `unseen`, was written afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic_ai.messages import ModelMessage, ToolReturnPart

from measure import ROOT, Report, built_in_tools

sys.path.insert(0, str(ROOT / "tests"))

from annabelle.core.contract import ToolCall, ToolList
from annabelle.core.errors import RetryByModel
from annabelle.core.settings import Settings
from annabelle.core.tools import ToolResult
from annabelle.embeddings import EmbeddingConfig, make_embedder
from annabelle.llm.types import ModelRequest
from annabelle.thinker.compression.message_text import render_messages
from annabelle.thinker.prompt.token_budget import count_tokens
from annabelle.thinker.prompt.tool_hints import ToolPatterns
from annabelle.thinker.selection.hybrid_selector import HybridSelector
from hints_data import FAMILIES, STRANGERS, UNSEEN, UNSEEN_STRANGERS, Family
from thinker.fakes import Bench, DictTools, ListedModel

HINT = re.compile(r"<worked-before>.*</worked-before>")
CALL = re.compile(r"(\w+)(?:\([^)]*\))?(?= →|</)")


class TrialTools(DictTools):
    """All built-in tools. What one returns depends on the request that is being worked on."""

    def __init__(self, listed: ToolList) -> None:
        super().__init__()
        self._listed = listed
        self.family: Family | None = None
        self.worked: list[str] = []

    async def tools(self) -> ToolList:
        return self._listed

    async def call(self, call: ToolCall, user_id: str) -> ToolResult:
        if call.call_id is None:  # memory at the start of a turn
            return ToolResult.failure(RetryByModel("Nothing is remembered here.").body())
        self.calls.append(call)
        family = self.family
        following = family.works[len(self.worked)] if family and len(self.worked) < len(family.works) else ""
        if call.name == following:
            self.worked.append(call.name)
            return ToolResult(text="This is what was needed.")
        if call.name == "search_tools" and family:
            return ToolResult(text=family.works[0], structured={"tools": [{"name": family.works[0]}]})
        if family and family.empty:
            return ToolResult(text="Nothing found.")
        return ToolResult.failure(RetryByModel("That does not work here.").body())


class TrialModel(ListedModel):
    """Follows a hint that it reads in the prompt, then its own way."""

    def __init__(self, tools: TrialTools) -> None:
        super().__init__(self._reply)
        self._tools = tools
        self.hints: list[str] = []
        """What every turn's first request said."""

    def _reply(self, request: ModelRequest) -> str | list[tuple[str, dict[str, object]]]:
        results = list(_results(request.messages))
        found = HINT.search(render_messages(request.messages))
        if not results:
            self.hints.append(found[0] if found else "")
        family = self._tools.family
        if family is None or self._tools.worked == list(family.works):
            return "Here it is."
        hinted = CALL.findall(found[0]) if found else []
        # Where the hint did not do, it goes on as without one.
        step = len(results) - len(hinted)
        if step < 0:
            return [(hinted[step], {})]
        return [(family.tried[step] if step < len(family.tried) else family.works[len(self._tools.worked)], {})]


def _results(messages: Iterable[ModelMessage]) -> Iterable[str]:
    return (part.tool_name for one in messages for part in one.parts if isinstance(part, ToolReturnPart))


@dataclass(frozen=True)
class Turn:
    """What one request took."""

    tool_calls: int
    model_calls: int
    hint: str


class Trial:
    """One agent, with hints or without."""

    def __init__(self, folder: Path, listed: ToolList, *, hints: bool) -> None:
        self._tools = TrialTools(listed)
        self._model = TrialModel(self._tools)
        self._bench = Bench(folder, self._model, self._tools)
        selector = HybridSelector(Settings(), make_embedder(EmbeddingConfig(), None), 0.7)
        patterns = ToolPatterns(folder) if hints else None
        self._bench.parts = replace(self._bench.parts, selector=selector, tool_patterns=patterns)
        self._turns = 0

    async def ask(self, text: str, family: Family | None) -> Turn:
        self._tools.family, self._tools.worked = family, []
        calls, requests = len(self._tools.calls), len(self._model.requests)
        self._turns += 1
        result = await self._bench.run(text, thread_id=f"thr_{self._turns}")
        if result.text != "Here it is.":
            raise SystemExit(f"a turn went wrong: {text}: {result.text}")
        made = len(self._tools.calls) - calls
        return Turn(made, len(self._model.requests) - requests, self._model.hints[-1])


@dataclass(frozen=True)
class Rows:
    """Requests to measure with."""

    families: tuple[Family, ...]
    strangers: tuple[str, ...]


SETS = {"": Rows(FAMILIES, STRANGERS), "unseen_": Rows(UNSEEN, UNSEEN_STRANGERS)}


async def measure(rows: Rows, listed: ToolList, *, hints: bool) -> tuple[dict[str, list[Turn]], list[Turn], list[Turn]]:
    """The turns of each family, of the reworded requests, and of the strangers."""
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), listed, hints=hints)
        turns: dict[str, list[Turn]] = {family.name: [] for family in rows.families}
        for place in range(len(rows.families[0].requests)):
            for family in rows.families:
                turns[family.name].append(await trial.ask(family.requests[place], family))
        strangers = [await trial.ask(text, None) for text in rows.strangers]
        return turns, [await trial.ask(family.reworded, family) for family in rows.families], strangers


def count_calls(rows: Rows, listed: ToolList) -> Counter[str]:
    totals = Counter[str]()
    for hints in (False, True):
        turns, reworded, strangers = asyncio.run(measure(rows, listed, hints=hints))
        label = "with" if hints else "without"
        for name, many in turns.items():
            first, *again = many
            totals[f"first_{label}"] += first.tool_calls
            totals[f"tool_calls_{label}"] += sum(turn.tool_calls for turn in again)
            totals[f"model_calls_{label}"] += sum(turn.model_calls for turn in again)
            print(f"{label:8} {name:36} first {first.tool_calls}, again {[turn.tool_calls for turn in again]}")
        totals[f"reworded_tool_calls_{label}"] = sum(turn.tool_calls for turn in reworded)
        if hints:
            again = [turn for many in turns.values() for turn in many[1:]]
            asked = [(family, turn) for family in rows.families for turn in turns[family.name]]
            asked += zip(rows.families, reworded, strict=True)
            every = [*again, *reworded, *strangers]
            totals["repeated"], totals["repeated_with_a_hint"] = len(again), sum(bool(turn.hint) for turn in again)
            totals["reworded"], totals["reworded_with_a_hint"] = len(reworded), sum(bool(r.hint) for r in reworded)
            totals["strangers"], totals["strangers_with_a_hint"] = len(strangers), sum(bool(s.hint) for s in strangers)
            totals["wrong_hints"] = sum(bool(turn.hint) and family.works[-1] not in turn.hint for family, turn in asked)
            totals["longest_hint_tokens"] = max(count_tokens(turn.hint) for turn in every)
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="Taken for the sake of the other benchmarks; nothing is read from it")
    parser.parse_args()
    listed = built_in_tools()
    report = Report("hints")
    for prefix, rows in SETS.items():
        totals = count_calls(rows, listed)
        report.figures |= {f"{prefix}{name}": float(value) for name, value in totals.items()}
        kind = "unseen: " if prefix else ""
        for calls, limit in (("tool_calls", 0.9 if prefix else 0.75), ("model_calls", 0.95 if prefix else 0.8)):
            ratio = report.ratios[f"{prefix}{calls}"] = totals[f"{calls}_with"] / totals[f"{calls}_without"]
            report.within(f"{kind}{calls} of repeated requests, ratio to none hinted", ratio, limit)
        changed = abs(totals["first_with"] - totals["first_without"])
        report.within(f"{kind}calls of a first request that hints change", changed, 0)
        report.within(f"{kind}hints for requests of no known kind", totals["strangers_with_a_hint"], 2)
        report.within(f"{kind}hints with the calls of another kind", totals["wrong_hints"], 0)
        report.within(f"{kind}longest hint, tokens", totals["longest_hint_tokens"], 60)
    report.print()


if __name__ == "__main__":
    main()
