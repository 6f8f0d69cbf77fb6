"""Keyword routes: which groups of tools the words of a message call for (routes.toml)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from annabelle.core.tools import ToolSpec
from annabelle.toolbox.native import NATIVE
from annabelle.toolbox.ranking.words import bounded, folded

_FILE = Path(__file__).with_name("routes.toml")
_SHORTEST_KEYWORD = 3


class _Route(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    groups: tuple[str, ...]
    words: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def expression(self) -> re.Pattern[str]:
        return re.compile("|".join((*map(re.escape, self.words), *self.patterns)), re.DOTALL)


class RouteFile(BaseModel):
    """The file as it is written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    default: tuple[str, ...]
    groups: dict[str, tuple[str, ...]]
    routes: tuple[_Route, ...]


@cache
def packaged_routes() -> RouteFile:
    return RouteFile.model_validate(tomllib.loads(_FILE.read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Routed:
    """The tools of the groups that were called for; `matched` is False where the default stood in."""

    names: tuple[str, ...]
    matched: bool


class Routes:
    """The routes for one list of tools: the packaged ones, and one for every other server that is there."""

    def __init__(self, tools: Sequence[ToolSpec], file: RouteFile | None = None) -> None:
        file = file or packaged_routes()
        self._members = {group: _matching(patterns, tools) for group, patterns in file.groups.items()}
        self._routes = [(route.expression(), route.groups) for route in file.routes]
        self._default = file.default
        grouped = {name for names in self._members.values() for name in names}
        for server in sorted({tool.server for tool in tools} - {NATIVE}):
            own = [tool for tool in tools if tool.server == server]
            if any(tool.name in grouped for tool in own):
                continue  # a route above is meant for it
            keywords = {folded(word).lower().strip() for tool in own for word in tool.keywords}
            keywords = {word for word in (*keywords, server.lower()) if len(word) >= _SHORTEST_KEYWORD}
            if keywords:
                group = f"{server}_*"
                self._members[group] = tuple(sorted(tool.name for tool in own))
                whole = "|".join(rf"\b{re.escape(word)}" for word in sorted(keywords))
                self._routes.append((re.compile(whole), (group,)))

    def called_for(self, text: str) -> Routed:
        """The tools of every group the text names, by group; of the default groups when it names none."""
        plain = folded(bounded(text)).lower()
        groups = [groups for expression, groups in self._routes if expression.search(plain)]
        if not groups:
            return Routed(self._tools(self._default), matched=False)
        return Routed(self._tools(name for found in groups for name in found), matched=True)

    def _tools(self, groups: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for group in groups for name in self._members.get(group, ())))


def _matching(patterns: Iterable[str], tools: Sequence[ToolSpec]) -> tuple[str, ...]:
    names = sorted(tool.name for tool in tools)
    return tuple(dict.fromkeys(name for pattern in patterns for name in names if fnmatchcase(name, pattern)))
