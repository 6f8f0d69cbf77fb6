"""The tool calls of a turn and what kind of action each was; claims in an answer are checked against them (TRU-04)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, get_args

from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart

from annabelle.core.tools import ToolSpec
from annabelle.core.trust import Trust
from annabelle.language.lexicon import Lexicon, load_lexicon
from annabelle.policy.intent.action_kinds import ActionKind

ActionOutcome = Literal["done", "failed", "unknown"]

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


class _ToolWords:
    """The words of tool names that tell what a tool does. A verb may stand for several kinds."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.kinds = {kind: lexicon.words(f"tool_verbs.{kind}") for kind in get_args(ActionKind)}
        self.dated = lexicon.words("tool_names.dated")
        self.reading = lexicon.words("tool_names.reading")
        self.anything = lexicon.words("tool_names.anything")
        self.acting = frozenset[str]().union(*self.kinds.values()) - self.reading


@cache
def _tool_words() -> _ToolWords:
    return _ToolWords(load_lexicon("claims"))


@dataclass(frozen=True, slots=True)
class ToolAction:
    """One call of this turn."""

    tool: str
    reads_only: bool
    outcome: ActionOutcome
    arguments: tuple[str, ...] = ()
    """Names of the parameters that were given, as far as the tool declares them."""
    trust: Trust = "untrusted"
    """Of the result."""

    def supports(self, kind: ActionKind) -> bool:
        """Whether this call may have done what a claim of this kind says."""
        return self.outcome == "done" and supports_claim(self.tool, kind, reads_only=self.reads_only)


def is_read_only(name: str, spec: ToolSpec | None) -> bool:
    """By the server's word, or by the tool's name where the server says nothing."""
    if spec is not None and spec.annotations.read_only:
        return True
    words, known = _split_name(name), _tool_words()
    return bool(words & known.reading) and not words & known.acting


def supports_claim(name: str, kind: ActionKind, *, reads_only: bool) -> bool:
    words, known = _split_name(name), _tool_words()
    if kind == "search":
        return True
    if reads_only:
        return kind == "transfer" and bool(words & known.kinds["transfer"])
    if kind == "done" or words & known.anything or not words & known.acting:
        return True
    if kind == "schedule" and words & known.dated:
        return bool(words & (known.kinds["create"] | known.kinds["update"] | known.kinds["schedule"]))
    return bool(words & known.kinds[kind])


def tools_used_earlier(history: Iterable[ModelMessage]) -> frozenset[str]:
    """The tools that worked in the turns the conversation still shows."""
    parts = (part for message in history if isinstance(message, ModelRequest) for part in message.parts)
    return frozenset(part.tool_name for part in parts if isinstance(part, ToolReturnPart) and part.outcome == "success")


def _split_name(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name))
