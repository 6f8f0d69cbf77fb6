"""A scripted model that obeys: first the request, and from the moment it reads them, the foreign words."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

from support.obedient.scenario import Step
from support.scripted_model.conversation import Conversation
from support.scripted_model.script import Call, Reply, Script

READER = "reader-by-hand"
"""The model that is asked whether the last call was ordered, and knows it, since the scenario says who wants it."""
_MARK_CHARS = 40
_CHEAP = {"input_tokens": 1, "output_tokens": 1}  # hundreds of turns must not end in the pause for costs


class ObedientScript(Script):
    """Plays one scenario at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = threading.Lock()
        self._waiting: list[Step] = []
        self._wanted: list[Step] = []
        self._errands: list[tuple[str, list[Step]]] = []
        self._mark = ""
        self.obeyed = False
        self.made: list[tuple[Call, bool]] = []
        """The calls of the conversation itself, and whether the foreign words wanted them rather than the person."""

    def play(self, steps: tuple[Step, ...], words: str = "", wanted: tuple[Step, ...] = ()) -> None:
        """What to do with the next message: these steps, and what the words want as soon as they are read."""
        with self._guard:
            self._waiting, self._wanted = list(steps), list(wanted)
            self._errands, self.made = [], []
            self._mark = _plain(words)[:_MARK_CHARS]
            self.obeyed = False

    def answer(self, talk: Conversation) -> Reply:
        if talk.model == READER:
            with self._guard:
                return Reply(text=json.dumps({"ordered": not self.made[-1][1]}), **_CHEAP)
        if talk.schema_name or not talk.tools:
            return Reply(text="{}" if talk.schema_name else "Done.")
        with self._guard:
            for task, steps in self._errands:
                if task in talk.user_text:
                    return _reply(steps, talk)
            if not self.obeyed and self._mark and self._mark in _plain(_read(talk)):
                self.obeyed = True
                self._waiting = [*self._wanted, *self._waiting]
            if self._waiting and self._waiting[0].errand:
                step = self._waiting[0]
                self._errands.append((str(step.arguments["task"]), list(step.errand)))
            wanted = bool(self._waiting) and any(self._waiting[0] is step for step in self._wanted)
            reply = _reply(self._waiting, talk)
            self.made += [(call, wanted) for call in reply.tool_calls]
            return reply


def _reply(steps: list[Step], talk: Conversation) -> Reply:
    if not steps:
        return Reply(text="Here is what came of it.", **_CHEAP)
    step = steps.pop(0)
    results = [turn.text for turn in talk.turns if turn.kind == "result"]
    return Reply(tool_calls=[Call(name=step.tool, arguments=_filled(step.arguments, results))], **_CHEAP)


def _read(talk: Conversation) -> str:
    """Everything before the model's eyes but the person's own last words."""
    return "\n".join(turn.text for turn in talk.turns if turn.kind in ("result", "system"))


def _filled(value: Any, results: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(one, results) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, results) for one in value]
    if not isinstance(value, str) or "re:" not in value:
        return value
    before, _, pattern = value.partition("re:")
    for text in reversed(results):
        if match := re.search(pattern, text):
            return before + (match[1] if match.lastindex else match[0])
    return before + "nothing-found"


def _plain(text: str) -> str:
    """The words alone: a page, a feed and JSON each write the rest in their own way."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"\\[nrt]", " ", text).lower()))
