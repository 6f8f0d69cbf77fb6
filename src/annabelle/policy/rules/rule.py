"""A standing rule, and whether it applies to a call (POL-05, TRU-05).

All kinds of conditions must hold; within one kind, one match is enough. A restriction applies if any argument matches;
an allowance only if nothing in the call lies outside it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal, Protocol, cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.tools import JsonObject
from annabelle.core.trust import ToolClass

RuleKind = Literal["allow", "ask", "never"]
_DEEPEST: Final = 50
_TOO_DEEP: Final = "\N{REPLACEMENT CHARACTER}(too deep to look at)"
_LARGEST: Final = 10**30
_TOO_LONG: Final = "\N{REPLACEMENT CHARACTER}(too long a number)"


class RuleMatch(BaseModel):
    """Which calls a rule is about. A condition that is empty is no condition."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tools: tuple[str, ...] = Field(default=(), description="Globs over exposed names, `gmail_*`")
    classes: tuple[ToolClass, ...] = ()
    arguments: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="Globs by argument; for an allowance no glob means: not given"
    )
    mentions: tuple[str, ...] = Field(default=(), description="Words of which one stands somewhere in the call")


@dataclass(frozen=True, slots=True)
class StandingRule:
    """`words` is the rule as the person said it, or the text of an allowance."""

    id: str
    kind: RuleKind
    words: str
    match: RuleMatch


@dataclass(frozen=True, slots=True)
class RuledCall:
    """A call as rules see it. `about` describes the objects its ids name, such as the sender and subject of a mail."""

    tool: str
    classes: tuple[ToolClass, ...]
    arguments: JsonObject
    about: tuple[str, ...] = ()


class RuleSource(Protocol):
    """The active rules of a person for one of their agents."""

    async def for_call(self, user_id: str, agent_id: str | None) -> tuple[StandingRule, ...]: ...


def matches(rule: StandingRule, call: RuledCall) -> bool:
    """Whether the rule applies to this call. A rule without conditions applies to none."""
    wanted = rule.match
    if not (wanted.tools or wanted.classes or wanted.arguments or wanted.mentions):
        return False
    if wanted.tools and not any(fnmatchcase(call.tool, glob) for glob in wanted.tools):
        return False
    if wanted.classes and not set(wanted.classes) & set(call.classes):
        return False
    if wanted.mentions and not _mentions_word(wanted.mentions, (*collect_texts(call.arguments), *call.about)):
        return False
    fits = _lies_within if rule.kind == "allow" else _touches
    return all(fits(collect_texts(call.arguments.get(name)), globs) for name, globs in wanted.arguments.items())


def exact_glob(text: str) -> str:
    """A glob that matches only this text."""
    return re.sub(r"([*?[])", r"[\1]", text)


def collect_texts(value: object, depth: int = 0) -> tuple[str, ...]:
    """Every text and number in a value; booleans as in JSON, nothing for None."""
    if value is None:
        return ()
    if depth > _DEEPEST:
        return (_TOO_DEEP,)  # a text that nobody can have said
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, dict):
        return tuple(
            text for one in cast("dict[str, object]", value).values() for text in collect_texts(one, depth + 1)
        )
    if isinstance(value, (list, tuple)):
        return tuple(text for one in cast("list[object]", value) for text in collect_texts(one, depth + 1))
    return (_TOO_LONG if isinstance(value, int) and abs(value) >= _LARGEST else str(value),)


def _lies_within(texts: tuple[str, ...], globs: tuple[str, ...]) -> bool:
    return bool(texts) == bool(globs) and all(any(fnmatchcase(text, glob) for glob in globs) for text in texts)


def _touches(texts: tuple[str, ...], globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text.casefold(), glob.casefold()) for text in texts for glob in globs)


def _mentions_word(words: Iterable[str], texts: Iterable[str]) -> bool:
    heap = _plain("\n".join(texts))
    return any(
        re.search(rf"(?<![^\W\d_]){re.escape(word)}(?![^\W\d_])", heap) for word in map(_plain, words) if word.strip()
    )


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
