"""Whether hints save calls: kinds of requests that come again, with hints of what worked before and without.

A scripted model reads the prompt. Where it holds a hint it makes the calls that the hint names; where there is none, or
where they do not do, it tries for each kind of request what a model may try first, and then what works. The turns are
real ones, with the selection of tools among all built-in ones; only the results of tools are made up. Every request has
a conversation of its own, so that the history tells nothing.
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
from hints_data import FAMILIES, STRANGERS, Family
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


async def measure(listed: ToolList, *, hints: bool) -> tuple[dict[str, list[Turn]], list[Turn], list[Turn]]:
    """The turns of each family, of the reworded requests, and of the strangers."""
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), listed, hints=hints)
        turns: dict[str, list[Turn]] = {family.name: [] for family in FAMILIES}
        for place in range(len(FAMILIES[0].requests)):
            for family in FAMILIES:
                turns[family.name].append(await trial.ask(family.requests[place], family))
        strangers = [await trial.ask(text, None) for text in STRANGERS]
        return turns, [await trial.ask(family.reworded, family) for family in FAMILIES], strangers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="Taken for the sake of the other benchmarks; nothing is read from it")
    parser.parse_args()
    listed = built_in_tools()
    report = Report("hints")
    totals = Counter[str]()
    for hints in (False, True):
        turns, reworded, strangers = asyncio.run(measure(listed, hints=hints))
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
            totals["repeated_requests"] = len(again)
            totals["repeated_with_a_hint"] = sum(bool(turn.hint) for turn in again)
            totals["reworded_with_a_hint"] = sum(bool(turn.hint) for turn in reworded)
            totals["strangers"], totals["strangers_with_a_hint"] = len(strangers), sum(bool(s.hint) for s in strangers)
            asked = [(family, turn) for family in FAMILIES for turn in turns[family.name]]
            asked += zip(FAMILIES, reworded, strict=True)
            totals["wrong_hints"] = sum(bool(turn.hint) and family.works[-1] not in turn.hint for family, turn in asked)
            every = [*again, *reworded, *strangers]
            totals["longest_hint_tokens"] = max(count_tokens(turn.hint) for turn in every)
            print(*sorted({turn.hint for turn in every if turn.hint}), sep="\n")
    report.figures = {name: float(value) for name, value in totals.items()}
    for kind in ("tool_calls", "model_calls"):
        report.ratios[kind] = totals[f"{kind}_with"] / totals[f"{kind}_without"]
    report.within("tool calls of a repeated request, ratio to none hinted", report.ratios["tool_calls"], 0.75)
    report.within("model calls of a repeated request, ratio to none hinted", report.ratios["model_calls"], 0.8)
    report.within("calls of a first request that hints change", abs(totals["first_with"] - totals["first_without"]), 0)
    report.within("hints for requests of no known kind", totals["strangers_with_a_hint"], 2)
    report.within("hints with the calls of another kind", totals["wrong_hints"], 0)
    report.within("longest hint, tokens", totals["longest_hint_tokens"], 60)
    report.print()


if __name__ == "__main__":
    main()
