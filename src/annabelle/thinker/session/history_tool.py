"""`search_agent_history`: the model looks through earlier conversations of the thread it is in (SES-04)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final, cast

from annabelle.core.errors import AnnabelleError, InvalidArguments
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.thinker.context.clock import day
from annabelle.thinker.loop.local_tools import LOCAL_SERVER
from annabelle.thinker.session.port import SessionStore
from annabelle.thinker.session.records import Archive, turn_of
from annabelle.thinker.session.shelf import Shelf
from annabelle.thinker.session.timeframe import days
from annabelle.thinker.session.words import share, words

NAME: Final = "search_agent_history"
MOST_SESSIONS: Final = 5
_MOST_EXCERPTS: Final = 3
_EXCERPT_CHARS: Final = 240
_QUERY_CHARS: Final = 500
_LEAST_MEANING: Final = 0.35

_SPEC: Final = ToolSpec(
    name=NAME,
    server=LOCAL_SERVER,
    original_name=NAME,
    description=(
        "Search earlier conversations with this user in this chat, which are archived and no longer in the history. "
        "Returns up to 5 of them with their date, a summary and the passages that match."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for; empty for the latest conversations"},
            "timeframe": {
                "type": "string",
                "description": "today, yesterday, week, month, all, a date as 2026-05-03, or 2026-05-01..2026-05-31",
                "default": "all",
            },
        },
        "required": ["query"],
    },
    annotations=ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False),
)


@dataclass(frozen=True, slots=True)
class HistoryTool:
    """The tool for one turn: it sees the conversations of one thread and one user."""

    store: SessionStore
    shelf: Shelf
    thread_id: str
    archives: Sequence[Archive]
    where: tzinfo

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: JsonObject) -> ToolResult:
        try:
            found = await self._found(_text(arguments, "query"), _text(arguments, "timeframe"))
        except AnnabelleError as error:
            return ToolResult.failure(error.body())
        if not found:
            return ToolResult(text="No earlier conversation matches.", structured={"sessions": []})
        return ToolResult(text="\n\n".join(map(_told, found)), structured={"sessions": found})

    async def _found(self, query: str, timeframe: str) -> list[JsonObject]:
        """The best matches, the newest first among equals."""
        wanted = days(timeframe, now().astimezone(self.where).date())
        within = [one for one in self.archives if wanted.touch(one.started_at, one.ended_at, self.where)]
        turns = await self.store.archived_turns(self.thread_id)
        asked = words(query[:_QUERY_CHARS])
        meant = await self.shelf.meanings(within, query[:_QUERY_CHARS]) or {} if asked else {}
        # In a thread: years of conversations take a while to read, and other turns go on meanwhile.
        return await asyncio.to_thread(self._best, within, asked, meant, turns)

    def _best(
        self,
        within: Sequence[Archive],
        asked: Sequence[str],
        meant: Mapping[str, float],
        turns: Mapping[str, Sequence[JsonObject]],
    ) -> list[JsonObject]:
        texts = _texts(turns)
        if not asked:
            return [self._shown(archive, [], texts) for archive in within[::-1][:MOST_SESSIONS]]
        scored = [(self._score(archive, asked, texts, meant), archive) for archive in reversed(within)]
        best = sorted((one for one in scored if one[0] > 0), key=lambda one: -one[0])[:MOST_SESSIONS]
        return [self._shown(archive, asked, texts) for _score, archive in best]

    def _score(
        self, archive: Archive, asked: Sequence[str], texts: Mapping[str, list[str]], meant: Mapping[str, float]
    ) -> float:
        said = "\n".join([archive.summary, *texts.get(archive.id, [])])
        near = meant.get(archive.id, 0.0)
        return share(asked, said) + (near if near >= _LEAST_MEANING else 0.0)

    def _shown(self, archive: Archive, asked: Sequence[str], texts: Mapping[str, list[str]]) -> JsonObject:
        return {
            "date": day(archive.ended_at, self.where),
            "started_at": archive.started_at.astimezone(self.where).isoformat(timespec="minutes"),
            "ended_at": archive.ended_at.astimezone(self.where).isoformat(timespec="minutes"),
            "messages": archive.message_count,
            "summary": archive.summary,
            "excerpts": _excerpts(texts.get(archive.id, []), asked),
        }


def _text(arguments: JsonObject, name: str) -> str:
    value = arguments.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidArguments(f"{name} has to be a text.", field=name)
    return value


def _texts(turns: Mapping[str, Sequence[JsonObject]]) -> dict[str, list[str]]:
    """What user and assistant said in each conversation; what tools returned is not searched."""
    texts: dict[str, list[str]] = {}
    for archive_id, records in turns.items():
        said = [turn for turn in map(turn_of, records) if turn is not None]
        lines = (f"{who}: {text}" for turn in said for who, text in (("user", turn.user), ("you", turn.assistant)))
        texts[archive_id] = [line for line in lines if not line.endswith(": ")]
    return texts


def _excerpts(lines: Sequence[str], asked: Sequence[str]) -> list[str]:
    ranked = sorted(((share(asked, line), number) for number, line in enumerate(lines)), key=lambda one: -one[0])
    best = sorted(number for score, number in ranked[:_MOST_EXCERPTS] if score > 0)
    return [_around(lines[number], asked) for number in best]


def _around(line: str, asked: Sequence[str]) -> str:
    """The part of a line around the first word that was asked for."""
    line = " ".join(line.split())
    if len(line) <= _EXCERPT_CHARS:
        return line
    found = re.search("|".join(map(re.escape, asked)), line, re.IGNORECASE)
    start = max(0, (found.start() if found is not None else 0) - _EXCERPT_CHARS // 3)
    end = start + _EXCERPT_CHARS
    return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"


def _told(session: JsonObject) -> str:
    quoted = [f"- {excerpt}" for excerpt in cast("list[str]", session["excerpts"])]
    return "\n".join([f"{session['date']}: {session['summary']}", *quoted])
