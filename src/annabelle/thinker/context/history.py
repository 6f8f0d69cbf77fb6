"""Turns the records of a session into the messages a model reads: few, and never a call without its result."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ThinkingPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.thinker.context.harmless import harmless
from annabelle.thinker.context.repair import repaired
from annabelle.thinker.session.records import TurnRecord

_log = logging.getLogger(__name__)
_OLD_RESULT_CHARS = 4_000
_KEPT_TURNS = 400


class History:
    """Reads turns into messages. What was read once is kept: a turn never changes after it was written."""

    def __init__(self) -> None:
        self._read: OrderedDict[str, list[ModelMessage]] = OrderedDict()

    def latest(self, turns: Sequence[TurnRecord], limit: int) -> list[ModelMessage]:
        """The last messages, at most `limit`, in whole turns; of a turn too long by itself, its two ends."""
        kept: list[ModelMessage] = []
        for turn in reversed(turns):
            messages = self._messages(turn)
            room = limit - len(kept)
            if len(messages) > room:
                if not kept and room >= 2:
                    kept = _ends(messages, room)
                break
            kept = messages + kept
        return kept

    def _messages(self, turn: TurnRecord) -> list[ModelMessage]:
        known = self._read.get(turn.message_id)
        if known is None:
            known = self._read[turn.message_id] = repaired(_parse(turn))
            if len(self._read) > _KEPT_TURNS:
                self._read.popitem(last=False)
        else:
            self._read.move_to_end(turn.message_id)
        return known


def _ends(messages: list[ModelMessage], room: int) -> list[ModelMessage]:
    """The user's message and the latest part of what followed, cut where no pair is split."""
    tail = messages[-(room - 1) :]
    while tail and isinstance(tail[0], ModelRequest):
        tail = tail[1:]
    return repaired([messages[0], *tail])


def _parse(turn: TurnRecord) -> list[ModelMessage]:
    try:
        messages = ModelMessagesTypeAdapter.validate_python(turn.messages)
    except ValidationError:
        _log.warning("the model messages of %s can not be read; its plain text is used", turn.message_id)
        return [harmless(ModelRequest(parts=[UserPromptPart(content=turn.user)]))]
    return [_lighter(message) for message in messages]


def _lighter(message: ModelMessage) -> ModelMessage:
    """Reasoning of earlier turns is not sent again, and their long results only in part."""
    if isinstance(message, ModelResponse):
        return replace(message, parts=[part for part in message.parts if not isinstance(part, ThinkingPart)])
    parts = harmless(message).parts
    return replace(message, parts=[_shorter(part) if isinstance(part, ToolReturnPart) else part for part in parts])


def _shorter(part: ToolReturnPart) -> ToolReturnPart:
    content = part.content
    if isinstance(content, str) and len(content) > _OLD_RESULT_CHARS:
        cut = len(content) - _OLD_RESULT_CHARS
        return replace(
            part, content=f"{content[:_OLD_RESULT_CHARS]}\n[{cut} more characters of this earlier result left out]"
        )
    return part
