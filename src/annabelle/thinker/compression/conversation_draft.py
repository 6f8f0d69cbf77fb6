"""A conversation that is compressed block by block, with its current size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.thinker.compression.abbreviation import AbbreviationDegree, abbreviate_result, find_identifiers
from annabelle.thinker.compression.message_text import call_arguments, render_messages
from annabelle.thinker.compression.summary import build_summary
from annabelle.thinker.prompt.message_repair import repair_messages


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """Messages that belong together. A fixed block is never dropped, a frozen one not even shortened."""

    messages: tuple[ModelMessage, ...]
    fixed: bool = False
    frozen: bool = False


def split_into_blocks(messages: Sequence[ModelMessage], goal: ModelMessage) -> list[MessageBlock]:
    """The repaired conversation as blocks.

    Fixed are: system prompts, the user's first message, the goal, what the goal replies to, every message of the user
    since the last answer, and the last block, whose results are not used yet.
    """
    chain = _ensure_goal(repair_messages(messages), messages, goal)
    grouped = _group_messages(chain)
    answered = max((place for place, group in enumerate(grouped) if is_answer(group[-1])), default=-1)
    goal_at = next(place for place, group in enumerate(grouped) if any(one is goal for one in group))
    first = next((place for place, group in enumerate(grouped) if is_user(group[0])), -1)
    made: list[MessageBlock] = []
    for place, group in enumerate(grouped):
        frozen = place in (first, goal_at) or _is_system(group[0])
        asked = is_user(group[-1]) and place > min(answered, goal_at - 2)
        last = place == len(grouped) - 1 or place == goal_at - 1
        made.append(MessageBlock(tuple(group), fixed=frozen or asked or last, frozen=frozen))
    return made


def _ensure_goal(chain: list[ModelMessage], messages: Sequence[ModelMessage], goal: ModelMessage) -> list[ModelMessage]:
    """Make sure that the goal is in the chain, as the same object."""
    if any(one is goal for one in chain):
        return chain
    after = next((place for place, one in enumerate(messages) if one is goal), len(messages))
    return [*repair_messages(messages[:after]), goal, *repair_messages(messages[after + 1 :])]


def _group_messages(chain: Sequence[ModelMessage]) -> list[list[ModelMessage]]:
    grouped: list[list[ModelMessage]] = []
    for message in chain:
        if (
            grouped
            and isinstance(message, ModelRequest)
            and any(isinstance(part, ToolReturnPart) for part in message.parts)
        ):
            grouped[-1].append(message)
        else:
            grouped.append([message])
    return grouped


def _is_system(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, SystemPromptPart) for part in message.parts)


def is_user(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)


def is_answer(message: ModelMessage) -> bool:
    """A response with text and without calls."""
    if not isinstance(message, ModelResponse) or any(isinstance(part, ToolCallPart) for part in message.parts):
        return False
    return any(isinstance(part, TextPart) and part.content.strip() for part in message.parts)


CountTokens = Callable[[Sequence[ModelMessage]], int]
_LONG_ARGUMENT: Final = 200
_BEGINNING: Final = {AbbreviationDegree.COMPACT: 600, AbbreviationDegree.PRUNED: 240, AbbreviationDegree.NEEDED: 120}


class ConversationDraft:
    """Blocks with their current degree of abbreviation. A summary stands for dropped blocks, as far as it fits."""

    def __init__(self, blocks: Sequence[MessageBlock], count: CountTokens) -> None:
        self.blocks = blocks
        self._count = count
        self._now = [list(block.messages) for block in blocks]
        self._sizes = [count(block.messages) for block in blocks]
        self._whole = list(self._sizes)
        self._gone: set[int] = set()
        self._results = [AbbreviationDegree.WHOLE] * len(blocks)
        self._words = [AbbreviationDegree.WHOLE] * len(blocks)

    @property
    def size(self) -> int:
        """Without the summary."""
        return sum(size for place, size in enumerate(self._sizes) if place not in self._gone)

    def size_of(self, place: int) -> int:
        return self._sizes[place]

    def kept_blocks(self) -> list[int]:
        return [place for place in range(len(self.blocks)) if place not in self._gone]

    def block_text(self, place: int) -> str:
        return render_messages(self.blocks[place].messages)

    def abbreviate_results(self, place: int, degree: AbbreviationDegree) -> None:
        """Shorten the tool results of a block."""
        if degree > self._results[place]:
            self._results[place] = degree
            self._abbreviate(place)

    def abbreviate_words(self, place: int, degree: AbbreviationDegree) -> None:
        """Shorten what was said in a block."""
        if degree > self._words[place]:
            self._words[place] = degree
            self._abbreviate(place)

    def drop(self, place: int) -> None:
        if not self.blocks[place].fixed:
            self._gone.add(place)

    def render(self, target: int) -> list[ModelMessage]:
        """The conversation, with a summary instead of the first dropped block if it fits the target."""
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
        # A summary must be shorter than what it replaces.
        room = min(room, sum(self._whole[place] for place in self._gone) - 1)
        visible = "\n".join(render_messages(self._now[place]) for place in self.kept_blocks())
        said = "\n".join(render_messages(block.messages, results=False) for block in self.blocks)
        return build_summary(dropped, visible, said, room, self._count)

    def _abbreviate(self, place: int) -> None:
        block = self.blocks[place]
        if block.frozen or place in self._gone:
            return
        # Always from the original: a table made of JSON cannot be parsed again.
        new = [_abbreviate_message(message, self._results[place], self._words[place]) for message in block.messages]
        size = self._count(new)
        if size < self._sizes[place]:
            self._now[place], self._sizes[place] = new, size


def _abbreviate_message(message: ModelMessage, results: AbbreviationDegree, words: AbbreviationDegree) -> ModelMessage:
    if isinstance(message, ModelResponse):
        if words is AbbreviationDegree.WHOLE:
            return message
        calling = any(isinstance(part, ToolCallPart) for part in message.parts)
        parts = [
            replace(part, content=abbreviate_text(part.content, words))
            if isinstance(part, TextPart)
            else _abbreviate_call(part, words)
            if isinstance(part, ToolCallPart)
            else part
            for part in message.parts
            # Reasoning is only needed while the calls of its response are open.
            if calling or not isinstance(part, ThinkingPart)
        ]
        return replace(message, parts=parts) if parts else message
    requests: list[ModelRequestPart] = []
    for part in message.parts:
        if isinstance(part, ToolReturnPart) and isinstance(part.content, str):
            requests.append(replace(part, content=abbreviate_result(part.content, results)))
        elif isinstance(part, UserPromptPart) and isinstance(part.content, str):
            requests.append(replace(part, content=abbreviate_text(part.content, words)))
        else:
            requests.append(part)
    return replace(message, parts=requests)


def _abbreviate_call(call: ToolCallPart, degree: AbbreviationDegree) -> ToolCallPart:
    """Cut long texts in a finished call, such as the content of a written file."""
    arguments = call_arguments(call)
    short = {
        name: abbreviate_text(value, degree) if isinstance(value, str) and len(value) > _LONG_ARGUMENT else value
        for name, value in arguments.items()
    }
    return call if short == arguments else replace(call, args=short)


def abbreviate_text(text: str, degree: AbbreviationDegree) -> str:
    """The beginning of a text, and the identifiers of the rest."""
    most = _BEGINNING.get(degree, len(text))
    if len(text) <= most:
        return text
    beginning = text[:most].rsplit(None, 1)[0]
    words = [word for word in find_identifiers(text[len(beginning) :]) if word not in beginning]
    short = f"{beginning} … {' '.join(words)}".rstrip()
    return short if len(short) < len(text) else text
