"""What the words of a message call for: groups of tools (routes.toml), or nothing, because it is small talk. The words
are in language/*/selection.toml.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from annabelle.core.tools import ToolSpec
from annabelle.language.lexicon import join_phrases, load_lexicon
from annabelle.toolbox.catalogue import NATIVE
from annabelle.toolbox.ranking.words import clip_text, fold_text

_ROUTES_FILE = Path(__file__).with_name("routes.toml")
_SHORTEST_KEYWORD = 3


class RouteFile(BaseModel):
    """The file as it is written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    default: tuple[str, ...]
    groups: dict[str, tuple[str, ...]]
    routes: dict[str, tuple[str, ...]]


@cache
def load_packaged_routes() -> RouteFile:
    return RouteFile.model_validate(tomllib.loads(_ROUTES_FILE.read_text(encoding="utf-8")))


@cache
def _route_expression(route: str) -> re.Pattern[str]:
    lexicon = load_lexicon("selection")
    words = map(re.escape, lexicon.phrases(f"routes.{route}.words"))
    return re.compile(join_phrases((*words, *lexicon.phrases(f"routes.{route}.patterns"))), re.DOTALL)


@dataclass(frozen=True, slots=True)
class RoutedTools:
    """The tools of the groups that were called for; `matched` is False where the default stood in."""

    names: tuple[str, ...]
    matched: bool


class KeywordRoutes:
    """The routes for one list of tools: the packaged ones, and one for every other server that is there."""

    def __init__(self, tools: Sequence[ToolSpec], file: RouteFile | None = None) -> None:
        file = file or load_packaged_routes()
        self._members = {group: _match_names(patterns, tools) for group, patterns in file.groups.items()}
        self._routes = [(_route_expression(route), groups) for route, groups in file.routes.items()]
        self._default = file.default
        grouped = {name for names in self._members.values() for name in names}
        for server in sorted({tool.server for tool in tools} - {NATIVE}):
            own = [tool for tool in tools if tool.server == server]
            if any(tool.name in grouped for tool in own):
                continue  # a route above is meant for it
            keywords = {fold_text(word).lower().strip() for tool in own for word in tool.keywords}
            keywords = {word for word in (*keywords, server.lower()) if len(word) >= _SHORTEST_KEYWORD}
            if keywords:
                group = f"{server}_*"
                self._members[group] = tuple(sorted(tool.name for tool in own))
                whole = "|".join(rf"\b{re.escape(word)}" for word in sorted(keywords))
                self._routes.append((re.compile(whole), (group,)))

    def route(self, text: str) -> RoutedTools:
        """The tools of every group the text names, by group; of the default groups when it names none."""
        plain = fold_text(clip_text(text)).lower()
        groups = [groups for expression, groups in self._routes if expression.search(plain)]
        if not groups:
            return RoutedTools(self._tools(self._default), matched=False)
        return RoutedTools(self._tools(name for found in groups for name in found), matched=True)

    def _tools(self, groups: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for group in groups for name in self._members.get(group, ())))


def _match_names(patterns: Iterable[str], tools: Sequence[ToolSpec]) -> tuple[str, ...]:
    names = sorted(tool.name for tool in tools)
    return tuple(dict.fromkeys(name for pattern in patterns for name in names if fnmatchcase(name, pattern)))


_SMALL_TALK = ("greetings", "about_you", "thanks", "remarks", "assent")
_MAX_SMALL_TALK_CHARS = 120
_WORD = re.compile(r"[^\W_]+")

SmallTalkKind = Literal["small_talk", "assent"]


@dataclass(frozen=True, slots=True)
class _SmallTalkPhrases:
    said: frozenset[tuple[str, ...]]
    assent: frozenset[tuple[str, ...]]
    fillers: frozenset[str]
    longest: int


def classify_small_talk(text: str) -> SmallTalkKind | None:
    """What kind of small talk a whole message is; None when anything in it may be a request."""
    text = text.strip()
    if not text or len(text) > _MAX_SMALL_TALK_CHARS:
        return None
    found = _split_words(text)
    if not found:
        return "small_talk" if all(_is_symbol(sign) for sign in text) else None
    phrases = _load_phrases()
    kinds: list[SmallTalkKind] = []
    start = 0
    while start < len(found):
        length = next(
            (size for size in range(phrases.longest, 0, -1) if found[start : start + size] in phrases.said), 0
        )
        if length:
            assent = found[start : start + length] in phrases.assent
            kinds.append("assent" if assent else "small_talk")
        elif found[start] not in phrases.fillers:
            return None
        start += length or 1
    if not kinds:
        return None
    return "assent" if "assent" in kinds else "small_talk"


def _is_symbol(sign: str) -> bool:
    """Emoji, their parts, punctuation and space."""
    return unicodedata.category(sign)[0] in "SPZMC"


@cache
def _load_phrases() -> _SmallTalkPhrases:
    lexicon = load_lexicon("selection")
    said = frozenset(_split_words(phrase) for group in _SMALL_TALK for phrase in lexicon.phrases(group))
    assent = frozenset(_split_words(phrase) for phrase in lexicon.phrases("assent"))
    return _SmallTalkPhrases(said, assent, lexicon.words("fillers"), max(len(phrase) for phrase in said))


def _split_words(text: str) -> tuple[str, ...]:
    found: list[str] = _WORD.findall(fold_text(text).lower())
    return tuple(found)
