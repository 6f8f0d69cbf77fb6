"""Notices a model that goes round in circles with one tool (LOOP-02)."""

from __future__ import annotations

import json

from annabelle.core.tools import JsonObject


class Repetition:
    """Follows the run of calls of one tool in a row.

    A call brings news when neither its arguments nor its result were seen before in the run. `without_news` counts the
    calls since (and with) the last one that brought any.
    """

    def __init__(self) -> None:
        self.tool: str = ""
        self.in_a_row = 0
        self.without_news = 0
        self._seen: set[str] = set()

    def note(self, tool: str, arguments: JsonObject, result: str) -> None:
        if tool != self.tool:
            self.tool = tool
            self.in_a_row = self.without_news = 0
            self._seen = set()
        marks = {"a:" + json.dumps(arguments, sort_keys=True, default=str), "r:" + result}
        news = self._seen.isdisjoint(marks)
        self._seen |= marks
        self.in_a_row += 1
        self.without_news = 1 if news else self.without_news + 1
