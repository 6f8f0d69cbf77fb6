"""Finds earlier conversations by meaning, words and date: for the prompt (SES-06) and as the tool
`search_agent_history` (SES-04).
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Final, cast

from annabelle.core.errors import AnnabelleError, InvalidArguments
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.embeddings import Embedder, EmbeddingsUnavailable
from annabelle.language.lexicon import load_lexicon
from annabelle.thinker.prompt.clock import format_day
from annabelle.thinker.selection.selection import LOCAL_SERVER
from annabelle.thinker.session.records import Archive, parse_turn
from annabelle.thinker.session.session_store import SessionStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_WORD = re.compile(r"\w+")
_LEAST_LETTERS: Final = 3
_COMMON: Final = load_lexicon("recall").words("common_in_archives")


def extract_words(text: str) -> list[str]:
    """Distinct words in order; short ones only with a digit."""
    found = (word for word in _WORD.findall(text.lower()) if word not in _COMMON)
    return list(dict.fromkeys(word for word in found if len(word) >= _LEAST_LETTERS or any(map(str.isdigit, word))))


def word_overlap(wanted: Iterable[str], text: str) -> float:
    """The share of the wanted words in a text, also as beginnings of longer words."""
    asked = list(wanted)
    if not asked:
        return 0.0
    known = set(_WORD.findall(text.lower()))
    return sum(_is_known(word, known) for word in asked) / len(asked)


def _is_known(word: str, known: set[str]) -> bool:
    return word in known or (len(word) > _LEAST_LETTERS and any(other.startswith(word) for other in known))


_SECONDS: Final = 1.5
_KEPT_VECTORS: Final = 5_000
_RELEVANT_TEXT_CHARS: Final = 1_000
_LEAST_MEANING: Final = 0.35
_LEAST_SHARE: Final = 0.34
_LEAST_WORDS: Final = 2


class ArchiveSearch:
    """One per thinker. Caches the vectors of summaries."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    async def find_relevant(self, archives: Sequence[Archive], text: str, most: int) -> list[Archive]:
        """The archives that fit a text, in their order, at most `most` (SES-06)."""
        if not archives or most < 1:
            return []
        text = text[:_RELEVANT_TEXT_CHARS]
        meant = await self.score_by_meaning(archives, text)
        if meant is not None:
            near = [(score, archive) for archive in archives if (score := meant[archive.id]) >= _LEAST_MEANING]
        else:
            near = _score_by_words(archives, text)
        best = {archive.id for _score, archive in sorted(near, key=lambda pair: -pair[0])[:most]}
        return [archive for archive in archives if archive.id in best]

    async def score_by_meaning(self, archives: Sequence[Archive], text: str) -> Mapping[str, float] | None:
        """The similarity of each summary to a text, by archive id; None without vectors."""
        try:
            async with asyncio.timeout(_SECONDS):
                return await self._score(archives, text[:_RELEVANT_TEXT_CHARS])
        except (EmbeddingsUnavailable, TimeoutError):
            return None

    async def _score(self, archives: Sequence[Archive], text: str) -> dict[str, float]:
        fresh = [archive for archive in archives if _vector_key(archive) not in self._vectors]
        if fresh:
            made = await self._embedder.embed([archive.summary for archive in fresh])
            self._vectors.update((_vector_key(archive), row) for archive, row in zip(fresh, made, strict=True))
        # Read before the next await: another turn may evict vectors meanwhile.
        known = {archive.id: self._vectors[_vector_key(archive)] for archive in archives}
        while len(self._vectors) > _KEPT_VECTORS:
            self._vectors.popitem(last=False)
        wanted = (await self._embedder.embed([text], query=True))[0]
        # Vectors of another length come from another model and cannot be compared.
        return {name: float(one @ wanted) if one.shape == wanted.shape else 0.0 for name, one in known.items()}


def _vector_key(archive: Archive) -> str:
    return f"{archive.id}:{hash(archive.summary)}"


def _score_by_words(archives: Sequence[Archive], text: str) -> list[tuple[float, Archive]]:
    asked = extract_words(text)
    if len(asked) < _LEAST_WORDS:
        return []
    found = ((word_overlap(asked, archive.summary), archive) for archive in archives)
    return [(score, archive) for score, archive in found if score >= _LEAST_SHARE]


_DAYS_BACK: Final = {"today": 0, "yesterday": 1, "week": 7, "month": 31}
_BETWEEN = re.compile(r"\s*(?:\.\.|/|\bto\b|\s-\s)\s*")
_ANY_TIME: Final = ("", "all")


@dataclass(frozen=True, slots=True)
class DateRange:
    """Days from first to last, both included; None is an open end."""

    first: date | None = None
    last: date | None = None

    def overlaps(self, started: datetime, ended: datetime, time_zone: tzinfo) -> bool:
        """Whether a period falls into these days, in the user's time zone."""
        begun, over = started.astimezone(time_zone).date(), ended.astimezone(time_zone).date()
        return (self.last is None or begun <= self.last) and (self.first is None or over >= self.first)


def parse_timeframe(timeframe: str, today: date) -> DateRange:
    """`today`, `yesterday`, `week`, `month`, `all`, an ISO date, or two of them; InvalidArguments for anything else."""
    asked = timeframe.strip().lower()
    if asked in _ANY_TIME:
        return DateRange()
    if (back := _DAYS_BACK.get(asked)) is not None:
        return DateRange(today - timedelta(back), today - timedelta(1) if asked == "yesterday" else today)
    try:
        ends = [datetime.fromisoformat(part.upper()).date() if part else None for part in _BETWEEN.split(asked)]
    except ValueError:
        ends = []
    if not 1 <= len(ends) <= 2 or not any(ends):
        raise InvalidArguments(
            "The timeframe is not understood.",
            hint="Use today, yesterday, week, month, all, a date as 2026-05-03, or two as 2026-05-01..2026-05-31.",
            field="timeframe",
        )
    first, last = ends[0], ends[-1]
    if first is not None and last is not None and first > last:
        first, last = last, first
    return DateRange(first, last)


NAME: Final = "search_agent_history"
MOST_SESSIONS: Final = 5
_MOST_EXCERPTS: Final = 3
_EXCERPT_CHARS: Final = 240
_QUERY_CHARS: Final = 500

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
    """The tool of one turn, for the conversations of one thread and user."""

    store: SessionStore
    search: ArchiveSearch
    thread_id: str
    archives: Sequence[Archive]
    time_zone: tzinfo

    @property
    def spec(self) -> ToolSpec:
        return _SPEC

    async def call(self, arguments: JsonObject) -> ToolResult:
        try:
            found = await self._find_sessions(
                _read_text_argument(arguments, "query"), _read_text_argument(arguments, "timeframe")
            )
        except AnnabelleError as error:
            return ToolResult.failure(error.body())
        if not found:
            return ToolResult(text="No earlier conversation matches.", structured={"sessions": []})
        return ToolResult(text="\n\n".join(map(_format_session, found)), structured={"sessions": found})

    async def _find_sessions(self, query: str, timeframe: str) -> list[JsonObject]:
        """The best matches, the newest first among equals."""
        wanted = parse_timeframe(timeframe, now().astimezone(self.time_zone).date())
        within = [one for one in self.archives if wanted.overlaps(one.started_at, one.ended_at, self.time_zone)]
        turns = await self.store.archived_turns(self.thread_id)
        asked = extract_words(query[:_QUERY_CHARS])
        meant = await self.search.score_by_meaning(within, query[:_QUERY_CHARS]) or {} if asked else {}
        # In a thread, because years of conversations take a while to read.
        return await asyncio.to_thread(self._rank, within, asked, meant, turns)

    def _rank(
        self,
        within: Sequence[Archive],
        asked: Sequence[str],
        meant: Mapping[str, float],
        turns: Mapping[str, Sequence[JsonObject]],
    ) -> list[JsonObject]:
        texts = _conversation_texts(turns)
        if not asked:
            return [self._describe(archive, [], texts) for archive in within[::-1][:MOST_SESSIONS]]
        scored = [(self._score(archive, asked, texts, meant), archive) for archive in reversed(within)]
        best = sorted((one for one in scored if one[0] > 0), key=lambda one: -one[0])[:MOST_SESSIONS]
        return [self._describe(archive, asked, texts) for _score, archive in best]

    def _score(
        self, archive: Archive, asked: Sequence[str], texts: Mapping[str, list[str]], meant: Mapping[str, float]
    ) -> float:
        said = "\n".join([archive.summary, *texts.get(archive.id, [])])
        near = meant.get(archive.id, 0.0)
        return word_overlap(asked, said) + (near if near >= _LEAST_MEANING else 0.0)

    def _describe(self, archive: Archive, asked: Sequence[str], texts: Mapping[str, list[str]]) -> JsonObject:
        return {
            "date": format_day(archive.ended_at, self.time_zone),
            "started_at": archive.started_at.astimezone(self.time_zone).isoformat(timespec="minutes"),
            "ended_at": archive.ended_at.astimezone(self.time_zone).isoformat(timespec="minutes"),
            "messages": archive.message_count,
            "summary": archive.summary,
            "excerpts": _find_excerpts(texts.get(archive.id, []), asked),
        }


def _read_text_argument(arguments: JsonObject, name: str) -> str:
    value = arguments.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidArguments(f"{name} has to be a text.", field=name)
    return value


def _conversation_texts(turns: Mapping[str, Sequence[JsonObject]]) -> dict[str, list[str]]:
    """What user and assistant said in each conversation, without tool results."""
    texts: dict[str, list[str]] = {}
    for archive_id, records in turns.items():
        said = [turn for turn in map(parse_turn, records) if turn is not None]
        lines = (f"{who}: {text}" for turn in said for who, text in (("user", turn.user), ("you", turn.assistant)))
        texts[archive_id] = [line for line in lines if not line.endswith(": ")]
    return texts


def _find_excerpts(lines: Sequence[str], asked: Sequence[str]) -> list[str]:
    ranked = sorted(((word_overlap(asked, line), number) for number, line in enumerate(lines)), key=lambda one: -one[0])
    best = sorted(number for score, number in ranked[:_MOST_EXCERPTS] if score > 0)
    return [_excerpt_around(lines[number], asked) for number in best]


def _excerpt_around(line: str, asked: Sequence[str]) -> str:
    """The part of a line around the first matching word."""
    line = " ".join(line.split())
    if len(line) <= _EXCERPT_CHARS:
        return line
    found = re.search("|".join(map(re.escape, asked)), line, re.IGNORECASE)
    start = max(0, (found.start() if found is not None else 0) - _EXCERPT_CHARS // 3)
    end = start + _EXCERPT_CHARS
    return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"


def _format_session(session: JsonObject) -> str:
    quoted = [f"- {excerpt}" for excerpt in cast("list[str]", session["excerpts"])]
    return "\n".join([f"{session['date']}: {session['summary']}", *quoted])
