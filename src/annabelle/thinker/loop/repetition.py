"""Notices a model that goes round in circles with one tool (LOOP-02)."""

from __future__ import annotations

import hashlib
import json

from pydantic import BaseModel, ConfigDict

from annabelle.core.tools import JsonObject


class Run(BaseModel):
    """A run of calls of one tool, as a parked turn keeps it."""

    model_config = ConfigDict(frozen=True)

    tool: str = ""
    in_a_row: int = 0
    without_news: int = 0
    seen: tuple[str, ...] = ()


class Repetition:
    """Follows the run of calls of one tool in a row.

    A call brings news when neither its arguments nor its result were seen before in the run. `without_news` counts the
    calls since (and with) the last one that brought any.
    """

    def __init__(self, run: Run | None = None) -> None:
        run = run or Run()
        self.tool, self.in_a_row, self.without_news = run.tool, run.in_a_row, run.without_news
        self._seen = set(run.seen)

    def note(self, tool: str, arguments: JsonObject, result: str) -> None:
        if tool != self.tool:
            self.tool = tool
            self.in_a_row = self.without_news = 0
            self._seen = set[str]()
        marks = {_mark("a:" + json.dumps(arguments, sort_keys=True, default=str)), _mark("r:" + result)}
        news = self._seen.isdisjoint(marks)
        self._seen |= marks
        self.in_a_row += 1
        self.without_news = 1 if news else self.without_news + 1

    def run(self) -> Run:
        return Run(
            tool=self.tool, in_a_row=self.in_a_row, without_news=self.without_news, seen=tuple(sorted(self._seen))
        )


def _mark(text: str) -> str:
    """Short, so that a parked turn does not carry every result twice."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
