"""Tool calls that worked for earlier requests, offered as a hint when a request like them comes again (CMP-11).

A pattern holds no word of anybody. Of the request it keeps two bytes for each content word: enough to recognise the
same words again, too little to tell which words they were. Of the calls it keeps the names of tools and parameters.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from annabelle.core.errors import StorageTrouble
from annabelle.core.jsonl import JsonRecord, append_records, load_records, rewrite_records
from annabelle.thinker.compression.workspace import NAME as UPDATE_WORKSPACE
from annabelle.thinker.loop.action_log import ToolAction
from annabelle.thinker.prompt.escape import WORKED_BEFORE, escape_text, make_element
from annabelle.thinker.prompt.token_budget import HINT_TOKENS, PromptLayer, count_tokens
from annabelle.thinker.selection.selection import SEARCH_TOOLS
from annabelle.thinker.session.archive_search import extract_words
from annabelle.toolbox.ranking.words import clip_text, fold_text, stem_words

FILE: Final = "tool-patterns.jsonl"
MAX_PATTERNS: Final = 200
"""Of one user; the one that was used least recently goes first."""
_LEAST_WORDS: Final = 2
_MAX_WORDS: Final = 40
_MAX_CALLS: Final = 8
_ALIKE: Final = 0.33
_MUCH_ALIKE: Final = 0.5
"""Of all words of two requests, the share that both must have: where the tools speak for it too, and where not."""
_SPARE_LINES: Final = 200
# A hint names the tools that were found, and the plan is another one each time.
_NOT_KEPT: Final = frozenset({SEARCH_TOOLS, UPDATE_WORKSPACE})
_INTRODUCTION: Final = "Calls that worked for a request like this one: "

_log = logging.getLogger(__name__)


class PatternCall(BaseModel):
    model_config = ConfigDict(frozen=True)

    tool: str
    arguments: tuple[str, ...] = ()


class ToolPattern(BaseModel):
    """The calls that worked for one kind of request of one user."""

    model_config = ConfigDict(frozen=True)

    user: str
    words: frozenset[int] = Field(max_length=_MAX_WORDS)
    calls: tuple[PatternCall, ...] = Field(min_length=1, max_length=_MAX_CALLS)
    message_id: str = Field(description="The last turn it worked in, so that a resumed turn counts once")
    count: int = 1

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(call.tool for call in self.calls)

    def similarity(self, words: frozenset[int]) -> float:
        """The share of words that both have; zero if these are too few to tell."""
        shared = len(self.words & words)
        return shared / len(self.words | words) if shared >= _LEAST_WORDS else 0.0

    def to_json(self) -> JsonRecord:
        return {**self.model_dump(mode="json"), "words": sorted(self.words)}


def hash_words(text: str) -> frozenset[int]:
    """Two bytes for each content word. Words with digits are left out: they name a thing, not a kind of request."""
    found = stem_words(map(fold_text, extract_words(clip_text(text))))
    kept = list(dict.fromkeys(word for word in found if not any(map(str.isdigit, word))))[:_MAX_WORDS]
    return frozenset(int.from_bytes(blake2b(word.encode(), digest_size=2).digest()) for word in kept)


def keep_calls(actions: Sequence[ToolAction]) -> tuple[PatternCall, ...]:
    """The calls that worked, in order; empty if the turn did not end with one.

    A turn that read what others wrote gives the names of tools alone. An error does not count as read.
    """
    if not actions or actions[-1].outcome != "done":
        return ()
    worked = [action for action in actions if action.outcome == "done"]
    trusted = all(action.trust == "trusted" for action in worked)
    calls: list[PatternCall] = []
    for action in worked:
        if action.tool in _NOT_KEPT or (calls and calls[-1].tool == action.tool):
            continue
        calls.append(PatternCall(tool=action.tool, arguments=action.arguments if trusted else ()))
    return tuple(calls) if len(calls) <= _MAX_CALLS else ()


class ToolPatterns:
    """The patterns of one agent, in a file of its folder. Trouble with the file costs hints, never a turn."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._patterns: list[ToolPattern] | None = None
        self._lines = 0
        self._lock = asyncio.Lock()

    async def find(self, user_id: str, text: str, asked_for: Collection[str] = ()) -> ToolPattern | None:
        """The pattern of the request that is most like this one; among equals the latest.

        `asked_for` are the tools that were selected for what the message says: with one of them fewer words will do.
        """
        words = hash_words(text)
        async with self._lock:
            known = [pattern for pattern in await self._load() if pattern.user == user_id]
        best, least = None, 0.0
        for pattern in known:
            score = pattern.similarity(words)
            needed = _MUCH_ALIKE if set(pattern.tools).isdisjoint(asked_for) else _ALIKE
            if score >= max(needed, least):
                best, least = pattern, score
        return best

    async def record(self, user_id: str, message_id: str, text: str, actions: Sequence[ToolAction]) -> None:
        """Keep what worked in a turn. One call that worked at once teaches nothing new, so it is only counted."""
        words, calls = hash_words(text), keep_calls(actions)
        if len(words) < _LEAST_WORDS or not calls:
            return
        made = ToolPattern(user=user_id, words=words, calls=calls, message_id=message_id)
        async with self._lock:
            before = await self._load()
            known = _find_same(before, made)
            if (known is None and len(actions) == 1) or (known is not None and known.message_id == message_id):
                return
            self._patterns = _merge(before, made)
            try:
                await asyncio.to_thread(self._write, made)
            except StorageTrouble as error:
                _log.warning("a tool pattern was not written: %s", error.message)

    async def _load(self) -> list[ToolPattern]:
        if self._patterns is None:
            try:
                records = await asyncio.to_thread(load_records, self._path)
            except (OSError, StorageTrouble) as error:
                _log.warning("the tool patterns cannot be read: %s", type(error).__name__)
                records = []
            self._lines, self._patterns = len(records), list[ToolPattern]()
            for made in _parse_patterns(records):
                self._patterns = _merge(self._patterns, made)
        return self._patterns

    def _write(self, made: ToolPattern) -> None:
        """Append it; a file with many outdated lines is written again without them."""
        patterns = self._patterns or []
        if self._lines < len(patterns) + _SPARE_LINES:
            # Not synced: after a power cut the agent finds out again what works.
            append_records(self._path, [made.to_json()], durable=False)
            self._lines += 1
        else:
            rewrite_records(self._path, [pattern.to_json() for pattern in patterns])
            self._lines = len(patterns)


def _parse_patterns(records: Iterable[JsonRecord]) -> Iterable[ToolPattern]:
    for record in records:
        try:
            yield ToolPattern.model_validate(record)
        except ValidationError:
            _log.warning("a tool pattern is not valid and was passed over")


def _find_same(patterns: Sequence[ToolPattern], made: ToolPattern) -> ToolPattern | None:
    """The pattern of the same user and tools for a request like that of `made`."""
    same = (one for one in reversed(patterns) if one.user == made.user and one.tools == made.tools)
    return next((one for one in same if one.similarity(made.words) >= _ALIKE), None)


def _merge(patterns: Sequence[ToolPattern], made: ToolPattern) -> list[ToolPattern]:
    """The patterns with a new one at the end. The same one again is counted, with the words of the latest request."""
    known = _find_same(patterns, made)
    if known is not None:
        made = made.model_copy(update={"count": known.count + made.count})
    kept = [one for one in patterns if one is not known]
    own = [one for one in kept if one.user == made.user]
    gone = own[0] if len(own) >= MAX_PATTERNS else None
    return [*(one for one in kept if one is not gone), made]


def build_hint_layer(pattern: ToolPattern | None, offered: Collection[str]) -> PromptLayer:
    """One line with the calls, or nothing if one of the tools is not offered in this turn."""
    if pattern is None or any(tool not in offered for tool in pattern.tools):
        return PromptLayer()
    in_full = (f"{call.tool}({', '.join(call.arguments)})" if call.arguments else call.tool for call in pattern.calls)
    for calls in (in_full, pattern.tools):
        text = make_element(WORKED_BEFORE, escape_text(_INTRODUCTION + " → ".join(calls)))
        if count_tokens(text) <= HINT_TOKENS:
            return PromptLayer(text, 1)
    return PromptLayer("", 0, 1)
