"""The tool calls of a turn and what kind of action each was; claims in an answer are checked against them (TRU-04)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart

from annabelle.core.tools import ToolSpec
from annabelle.policy.intent.action_kinds import ActionKind

ActionOutcome = Literal["done", "failed", "unknown"]

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# The verbs in a tool's name. One verb may stand for several kinds of action.
_KINDS: Final[dict[ActionKind, frozenset[str]]] = {
    "send": _word_set("send reply post publish forward notify share tweet submit invite"),
    "create": _word_set("create write add make new save store insert upload copy generate append put set duplicate"),
    "update": _word_set(
        "update write edit modify change set patch move rename replace append mark put add assign link unlink restore "
        "archive label merge remove save store copy"
    ),
    "delete": _word_set("delete remove clear trash forget cancel purge drop erase unlink archive clean revoke"),
    "schedule": _word_set("schedule reschedule book remind queue"),
    "remember": _word_set("remember store save add create write update record append put learn import"),
    "transfer": _word_set("download upload install export import fetch get save move copy backup sync"),
    "pay": _word_set("pay order buy purchase transfer checkout book donate"),
    "run": _word_set("run execute exec start trigger"),
    "control": _word_set("turn switch enable disable start stop restart set toggle pause resume open close"),
}
_DATED: Final = _word_set("event calendar job cron task reminder skill appointment meeting alarm timer todo")
_READING: Final = _word_set(
    "get list read search find fetch look lookup query check retrieve status show describe view browse count info "
    "recall snapshot screenshot history stats peek download export console network"
)
_ACTING: Final = frozenset(word for words in _KINDS.values() for word in words) - _READING
# What these do is up to their arguments, so any claim may be theirs.
_ANYTHING: Final = _word_set(
    "execute exec run shell bash browser click type fill press evaluate subagent spawn delegate workflow call request"
)


@dataclass(frozen=True, slots=True)
class ToolAction:
    """One call of this turn."""

    tool: str
    reads_only: bool
    outcome: ActionOutcome

    def supports(self, kind: ActionKind) -> bool:
        """Whether this call may have done what a claim of this kind says."""
        return self.outcome == "done" and supports_claim(self.tool, kind, reads_only=self.reads_only)


def is_read_only(name: str, spec: ToolSpec | None) -> bool:
    """By the server's word, or by the tool's name where the server says nothing."""
    if spec is not None and spec.annotations.read_only:
        return True
    words = _split_name(name)
    return bool(words & _READING) and not words & _ACTING


def supports_claim(name: str, kind: ActionKind, *, reads_only: bool) -> bool:
    words = _split_name(name)
    if kind == "search":
        return True
    if reads_only:
        return kind == "transfer" and bool(words & _KINDS["transfer"])
    if kind == "done" or words & _ANYTHING or not words & _ACTING:
        return True
    if kind == "schedule" and words & _DATED:
        return bool(words & (_KINDS["create"] | _KINDS["update"] | _KINDS["schedule"]))
    return bool(words & _KINDS[kind])


def tools_used_earlier(history: Iterable[ModelMessage]) -> frozenset[str]:
    """The tools that worked in the turns the conversation still shows."""
    parts = (part for message in history if isinstance(message, ModelRequest) for part in message.parts)
    return frozenset(part.tool_name for part in parts if isinstance(part, ToolReturnPart) and part.outcome == "success")


def _split_name(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name))
