"""A conversation being made shorter, block by block, with its size always known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.thinker.compress.blocks import Block
from annabelle.thinker.compress.compact import Degree, compacted
from annabelle.thinker.compress.identifiers import identifiers
from annabelle.thinker.compress.summary import summary_of
from annabelle.thinker.compress.texts import arguments_of, text_of_block

Count = Callable[[Sequence[ModelMessage]], int]
_LONG_ARGUMENT: Final = 200
_BEGINNING: Final = {Degree.COMPACT: 600, Degree.PRUNED: 240, Degree.NEEDED: 120}


class Draft:
    """Blocks at the degree they are kept at so far. A summary tells what was dropped, as far as it has room."""

    def __init__(self, blocks: Sequence[Block], count: Count) -> None:
        self.blocks = blocks
        self._count = count
        self._now = [list(block.messages) for block in blocks]
        self._sizes = [count(block.messages) for block in blocks]
        self._whole = list(self._sizes)
        self._gone: set[int] = set()
        self._results = [Degree.WHOLE] * len(blocks)
        self._words = [Degree.WHOLE] * len(blocks)

    @property
    def size(self) -> int:
        """Without the summary."""
        return sum(size for place, size in enumerate(self._sizes) if place not in self._gone)

    def size_of(self, place: int) -> int:
        return self._sizes[place]

    def kept(self) -> list[int]:
        return [place for place in range(len(self.blocks)) if place not in self._gone]

    def text(self, place: int) -> str:
        return text_of_block(self.blocks[place].messages)

    def results_at(self, place: int, degree: Degree) -> None:
        """Shorten the tool results of a block."""
        if degree > self._results[place]:
            self._results[place] = degree
            self._shorten(place)

    def words_at(self, place: int, degree: Degree) -> None:
        """Shorten what was said in a block."""
        if degree > self._words[place]:
            self._words[place] = degree
            self._shorten(place)

    def drop(self, place: int) -> None:
        if not self.blocks[place].fixed:
            self._gone.add(place)

    def finished(self, target: int) -> list[ModelMessage]:
        """The conversation, with a summary where the first dropped block stood, if it has room below the target."""
        result: list[ModelMessage] = []
        summary = self._summary(target - self.size) if self._gone else None
        for place, messages in enumerate(self._now):
            if place not in self._gone:
                result += messages
            elif summary is not None:
                result.append(summary)
                summary = None
        return result

    def _summary(self, room: int) -> ModelRequest | None:
        dropped = [self.blocks[place].messages for place in sorted(self._gone)]
        # A summary longer than what it stands for would be worse than nothing.
        room = min(room, sum(self._whole[place] for place in self._gone) - 1)
        visible = "\n".join(text_of_block(self._now[place]) for place in self.kept())
        said = "\n".join(text_of_block(block.messages, results=False) for block in self.blocks)
        return summary_of(dropped, visible, said, room, self._count)

    def _shorten(self, place: int) -> None:
        block = self.blocks[place]
        if block.frozen or place in self._gone:
            return
        # Always from what was said at first: a table that was made of JSON can not be read as JSON again.
        new = [_shortened(message, self._results[place], self._words[place]) for message in block.messages]
        size = self._count(new)
        if size < self._sizes[place]:
            self._now[place], self._sizes[place] = new, size


def _shortened(message: ModelMessage, results: Degree, words: Degree) -> ModelMessage:
    if isinstance(message, ModelResponse):
        if words is Degree.WHOLE:
            return message
        calling = any(isinstance(part, ToolCallPart) for part in message.parts)
        parts = [
            replace(part, content=shorter(part.content, words))
            if isinstance(part, TextPart)
            else _fewer_words(part, words)
            if isinstance(part, ToolCallPart)
            else part
            for part in message.parts
            # Reasoning is only bound to its response while its calls are open.
            if calling or not isinstance(part, ThinkingPart)
        ]
        return replace(message, parts=parts) if parts else message
    requests: list[ModelRequestPart] = []
    for part in message.parts:
        if isinstance(part, ToolReturnPart) and isinstance(part.content, str):
            requests.append(replace(part, content=compacted(part.content, results)))
        elif isinstance(part, UserPromptPart) and isinstance(part.content, str):
            requests.append(replace(part, content=shorter(part.content, words)))
        else:
            requests.append(part)
    return replace(message, parts=requests)


def _fewer_words(call: ToolCallPart, degree: Degree) -> ToolCallPart:
    """Of long texts in a call that is done, such as a file that was written, the beginning is kept."""
    arguments = arguments_of(call)
    short = {
        name: shorter(value, degree) if isinstance(value, str) and len(value) > _LONG_ARGUMENT else value
        for name, value in arguments.items()
    }
    return call if short == arguments else replace(call, args=short)


def shorter(text: str, degree: Degree) -> str:
    """The beginning of what was said, and what may be needed of the rest."""
    most = _BEGINNING.get(degree, len(text))
    if len(text) <= most:
        return text
    beginning = text[:most].rsplit(None, 1)[0]
    words = [word for word in identifiers(text[len(beginning) :]) if word not in beginning]
    short = f"{beginning} … {' '.join(words)}".rstrip()
    return short if len(short) < len(text) else text
