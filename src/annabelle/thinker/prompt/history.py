"""Turns the records of a session into model messages: the latest exchanges, and older ones that are relevant.

Requests keep the same beginning for a provider's cache, with two exceptions: older exchanges are chosen by each new
message, and a tool result becomes a stub when there are two newer ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    TextPart,
    ThinkingPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.embeddings import Embedder, EmbeddingsUnavailable
from annabelle.thinker.prompt.escape import escape_message, escape_section_tags
from annabelle.thinker.prompt.message_repair import repair_messages
from annabelle.thinker.session.records import SessionTurn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


VERBATIM_RESULTS: Final = 2


def stub_old_results(messages: Sequence[ModelMessage], verbatim: int = VERBATIM_RESULTS) -> list[ModelMessage]:
    """Replace all tool results but the last ones by `[tool: truncated, was N chars]`."""
    stubbed: list[ModelMessage] = []
    seen = 0
    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            results = sum(isinstance(part, ToolReturnPart) for part in message.parts)
            if seen + results > verbatim:
                message = _stub_message(message, keep=max(0, verbatim - seen))
            seen += results
        stubbed.append(message)
    stubbed.reverse()
    return stubbed


def _stub_message(message: ModelRequest, keep: int) -> ModelRequest:
    old = sum(isinstance(part, ToolReturnPart) for part in message.parts) - keep
    parts: list[ModelRequestPart] = []
    for part in message.parts:
        if isinstance(part, ToolReturnPart) and old > 0:
            old -= 1
            parts.append(_stub_result(part))
        else:
            parts.append(part)
    return replace(message, parts=parts)


def _stub_result(part: ToolReturnPart) -> ToolReturnPart:
    length = len(part.content) if isinstance(part.content, str) else len(part.model_response_str())
    return replace(part, content=f"[{part.tool_name}: truncated, was {length} chars]")


_log = logging.getLogger(__name__)
CONSIDERED_MESSAGES: Final = 30
ALWAYS_EXCHANGES: Final = 3
_FEWEST = 2
_KEPT_TURNS = 400


@dataclass(frozen=True, slots=True)
class ChosenHistory:
    """The messages to send, in order, and how many exchanges were left out."""

    messages: list[ModelMessage]
    left_out: int = 0


class HistorySelector:
    """Chooses turns and parses them. Parsed turns are cached: a turn never changes."""

    def __init__(self, threshold: float = 0.45) -> None:
        self._threshold = threshold
        self._read: OrderedDict[str, list[ModelMessage]] = OrderedDict()

    def older_turns(self, turns: Sequence[SessionTurn]) -> list[SessionTurn]:
        """The turns that are sent only if relevant: among the last messages, but not the latest exchanges."""
        count, considered = 0, list[SessionTurn]()
        for place, turn in enumerate(reversed(turns)):
            count += len(self._messages(turn))
            if count > CONSIDERED_MESSAGES:
                break
            if place >= ALWAYS_EXCHANGES:
                considered.insert(0, turn)
        return considered

    def choose(self, turns: Sequence[SessionTurn], limit: int, close: Mapping[str, float] | None) -> ChosenHistory:
        """At most `limit` messages in whole exchanges: the latest three, and older ones by relevance.

        Without `close` (relevance scores) the latest that fit are taken.
        """
        kept = self._keep_latest(turns[-ALWAYS_EXCHANGES:], limit)
        room = limit - sum(map(len, kept.values()))
        older = self.older_turns(turns)
        if close is None:
            wanted = list(reversed(older))
        else:
            near = [turn for turn in older if close.get(turn.message_id, 0.0) >= self._threshold]
            wanted = sorted(near, key=lambda turn: close[turn.message_id], reverse=True)
        for turn in wanted:
            messages = self._messages(turn)
            if len(messages) <= room:
                kept[turn.message_id] = messages
                room -= len(messages)
            elif close is None:
                break
        chain = [message for turn in turns for message in kept.get(turn.message_id, ())]
        # Repair the whole chain: call ids are unique only within a turn.
        return ChosenHistory(stub_old_results(repair_messages(chain)), len(turns) - len(kept))

    def _keep_latest(self, turns: Sequence[SessionTurn], limit: int) -> dict[str, list[ModelMessage]]:
        """Each turn at least with question and answer, the newest with as much in between as fits."""
        kept: dict[str, list[ModelMessage]] = {}
        room = limit
        for place, turn in enumerate(reversed(turns)):
            messages = self._messages(turn)
            others = len(turns) - place - 1
            most = min(room, max(_FEWEST, room - _FEWEST * others))
            if len(messages) > most:
                messages = _trim_exchange(messages, most) if most >= _FEWEST else []
            if messages:
                kept[turn.message_id] = messages
                room -= len(messages)
        return kept

    def _messages(self, turn: SessionTurn) -> list[ModelMessage]:
        known = self._read.get(turn.message_id)
        if known is None:
            known = self._read[turn.message_id] = repair_messages(_parse_messages(turn))
            if len(self._read) > _KEPT_TURNS:
                self._read.popitem(last=False)
        else:
            self._read.move_to_end(turn.message_id)
        return known


def _trim_exchange(messages: list[ModelMessage], room: int) -> list[ModelMessage]:
    """The user's message and the latest part of the rest, without splitting a call from its result."""
    tail = messages[-(room - 1) :]
    while tail and isinstance(tail[0], ModelRequest):
        tail = tail[1:]
    return [messages[0], *tail]


def _parse_messages(turn: SessionTurn) -> list[ModelMessage]:
    try:
        messages = ModelMessagesTypeAdapter.validate_python(turn.messages)
    except ValidationError:
        _log.warning("the model messages of %s cannot be read; its plain text is used", turn.message_id)
        return [escape_message(ModelRequest(parts=[UserPromptPart(content=turn.user)]))]
    return [_strip_reasoning(message) for message in messages]


def _strip_reasoning(message: ModelMessage) -> ModelMessage:
    """Drop reasoning of earlier turns, and escape our section tags."""
    if isinstance(message, ModelRequest):
        return escape_message(message)
    parts = [part for part in message.parts if not isinstance(part, ThinkingPart)]
    return replace(
        message,
        parts=[
            replace(one, content=escape_section_tags(one.content)) if isinstance(one, TextPart) else one
            for one in parts
        ],
    )


_RELEVANCE_SECONDS = 1.0
_MAX_VECTORS = 2_000
_COMPARED_TEXT_CHARS = 1_000
"""Characters of a question or an answer that are compared."""


class HistoryRelevance:
    """Scores exchanges by similarity to a message. Caches vectors: an exchange never changes. One per thinker."""

    def __init__(self, embedder: Embedder, seconds: float = _RELEVANCE_SECONDS) -> None:
        self._embedder, self._seconds = embedder, seconds
        self._vectors: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._task: asyncio.Task[dict[str, float]] | None = None

    async def score(self, text: str, turns: Sequence[SessionTurn]) -> dict[str, float] | None:
        """The cosine for each turn by message id; None without vectors, or if they take too long.

        A slow provider may finish in the background, so that the next turn finds the vectors. Until then nobody waits.
        """
        if self._task is not None and not self._task.done():
            return None
        self._task = asyncio.create_task(self._compare(text, turns))
        await asyncio.wait({self._task}, timeout=self._seconds)
        if not self._task.done():
            return None
        try:
            return self._task.result()
        except EmbeddingsUnavailable:
            return None

    async def _compare(self, text: str, turns: Sequence[SessionTurn]) -> dict[str, float]:
        missing = [turn for turn in turns if turn.message_id not in self._vectors]
        if missing:
            rows = await self._embedder.embed([text for turn in missing for text in _embedded_texts(turn)])
            self._vectors.update((turn.message_id, rows[2 * n : 2 * n + 2]) for n, turn in enumerate(missing))
        found = {turn.message_id: self._vectors[turn.message_id] for turn in turns}
        while len(self._vectors) > _MAX_VECTORS:
            self._vectors.popitem(last=False)
        asked = (await self._embedder.embed([text[: 2 * _COMPARED_TEXT_CHARS]], query=True))[0]
        if any(vectors.shape[1] != len(asked) for vectors in found.values()):
            _log.warning("vectors of two lengths came from %s; all are discarded", self._embedder.model)
            self._vectors.clear()
            raise EmbeddingsUnavailable("The vectors do not fit together.")
        return {name: float((vectors @ asked).max()) for name, vectors in found.items()}


def _embedded_texts(turn: SessionTurn) -> tuple[str, str]:
    """The question alone and with its answer: a long answer dilutes it, a short question says little."""
    return turn.user[
        :_COMPARED_TEXT_CHARS
    ], f"{turn.user[:_COMPARED_TEXT_CHARS]}\n{turn.assistant[:_COMPARED_TEXT_CHARS]}"
