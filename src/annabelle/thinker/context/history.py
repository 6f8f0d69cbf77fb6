"""Turns the records of a session into the messages a model reads: the latest, and of the older the ones that matter.

What an earlier request began with, the next one repeats as long as the rules allow. Two of them can not keep it: an
older exchange comes and goes with the message it is compared to, and a result becomes a stub when two newer ones are
there. Both touch only what lies behind the static layers, and nothing before the first exchange that changed.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    TextPart,
    ThinkingPart,
    UserPromptPart,
)

from annabelle.thinker.context.harmless import harmless
from annabelle.thinker.context.repair import repaired
from annabelle.thinker.context.stubs import with_stubs
from annabelle.thinker.context.tags import defused
from annabelle.thinker.session.records import TurnRecord

_log = logging.getLogger(__name__)
CONSIDERED_MESSAGES: Final = 30
ALWAYS_EXCHANGES: Final = 3
_FEWEST = 2
_KEPT_TURNS = 400


@dataclass(frozen=True, slots=True)
class Chosen:
    """What of a conversation is sent: the messages in their order, and how many exchanges were not taken along."""

    messages: list[ModelMessage]
    left_out: int = 0


class History:
    """Reads turns into messages. What was read once is kept: a turn never changes after it was written."""

    def __init__(self, threshold: float = 0.45) -> None:
        self._threshold = threshold
        self._read: OrderedDict[str, list[ModelMessage]] = OrderedDict()

    def older(self, turns: Sequence[TurnRecord]) -> list[TurnRecord]:
        """The turns that are sent along only when they matter: within the last messages, behind the latest ones."""
        count, considered = 0, list[TurnRecord]()
        for place, turn in enumerate(reversed(turns)):
            count += len(self._messages(turn))
            if count > CONSIDERED_MESSAGES:
                break
            if place >= ALWAYS_EXCHANGES:
                considered.insert(0, turn)
        return considered

    def choose(self, turns: Sequence[TurnRecord], limit: int, close: Mapping[str, float] | None) -> Chosen:
        """At most `limit` messages in whole exchanges: the latest three, and older ones by how close they are.

        Without `close` nothing is known of their meaning, and the latest that have room are taken.
        """
        kept = self._latest(turns[-ALWAYS_EXCHANGES:], limit)
        room = limit - sum(map(len, kept.values()))
        older = self.older(turns)
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
        # Over the whole once more: ids that are unique in a turn may come again in another.
        return Chosen(with_stubs(repaired(chain)), len(turns) - len(kept))

    def _latest(self, turns: Sequence[TurnRecord], limit: int) -> dict[str, list[ModelMessage]]:
        """Each of them at least with question and answer, the newest with as much between them as has room."""
        kept: dict[str, list[ModelMessage]] = {}
        room = limit
        for place, turn in enumerate(reversed(turns)):
            messages = self._messages(turn)
            others = len(turns) - place - 1
            most = min(room, max(_FEWEST, room - _FEWEST * others))
            if len(messages) > most:
                messages = _ends(messages, most) if most >= _FEWEST else []
            if messages:
                kept[turn.message_id] = messages
                room -= len(messages)
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
    return [messages[0], *tail]


def _parse(turn: TurnRecord) -> list[ModelMessage]:
    try:
        messages = ModelMessagesTypeAdapter.validate_python(turn.messages)
    except ValidationError:
        _log.warning("the model messages of %s can not be read; its plain text is used", turn.message_id)
        return [harmless(ModelRequest(parts=[UserPromptPart(content=turn.user)]))]
    return [_lighter(message) for message in messages]


def _lighter(message: ModelMessage) -> ModelMessage:
    """Reasoning of earlier turns is not sent again, and no tag of ours in what was said."""
    if isinstance(message, ModelRequest):
        return harmless(message)
    parts = [part for part in message.parts if not isinstance(part, ThinkingPart)]
    return replace(
        message,
        parts=[replace(one, content=defused(one.content)) if isinstance(one, TextPart) else one for one in parts],
    )
