"""Sums up what is left out of a conversation without asking a model: what was asked, what was called, what came out.

Its heart are the values that later tool calls may need. Those most likely to be needed come first, and each is named
once: what still stands elsewhere in the conversation is not repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from annabelle.thinker.compress.compact import by_key, leaves, needed, parsed
from annabelle.thinker.compress.identifiers import identifiers, weight
from annabelle.thinker.compress.texts import arguments_of, result_text, user_text
from annabelle.thinker.context.tags import SUMMARY, element

_OF: Final = "what was left out of this conversation"
# The same messages give the same summary, also a minute later.
_ALWAYS: Final = datetime(1970, 1, 1, tzinfo=UTC)
_USER_CHARS: Final = 100
_FEWEST_TOKENS: Final = 40
_SAID_AGAIN: Final = 1.5
_USER: Final = 3.0

Count = Callable[[Sequence[ModelMessage]], int]


@dataclass(frozen=True, slots=True)
class _Piece:
    """One thing a summary may tell. `row` says which line it belongs to, `score` how much it would be missed."""

    row: int
    key: str
    value: str
    score: float


@dataclass(frozen=True, slots=True)
class _Row:
    head: str
    pieces: tuple[_Piece, ...]


def summary_of(
    dropped: Sequence[Sequence[ModelMessage]], visible: str, said: str, room: int, count: Count
) -> ModelRequest | None:
    """A message that stands for the dropped ones and has at most `room` tokens; None when that is not enough.

    `visible` is the text that stays, `said` what people, the model and its calls said in the whole conversation.
    """
    rows = list(_rows(dropped, said))
    chosen = sorted(_fresh(rows, visible), key=lambda piece: (-piece.score, -piece.row))
    characters = int((room - _FEWEST_TOKENS) * 3.6)
    while room >= _FEWEST_TOKENS and characters > 0 and chosen:
        chosen = _within(chosen, rows, characters)
        if not chosen:
            break
        message = _message(rows, chosen)
        if count([message]) <= room:
            return message
        characters = int(characters * 0.85)
    return None


def _rows(dropped: Sequence[Sequence[ModelMessage]], said: str) -> Iterator[_Row]:
    told = [row for messages in dropped for row in _told(messages)]
    for number, (head, pairs, base) in enumerate(told):
        age = number / max(1, len(told))
        pieces = (_Piece(number, key, value, (base or _worth(value, key, said)) + age) for key, value in pairs)
        yield _Row(head, tuple(pieces))


def _told(messages: Sequence[ModelMessage]) -> list[tuple[str, list[tuple[str, str]], float]]:
    """A line each for a call with its result, for what the user said, and for what the model said.

    A line is its beginning, its pairs of key and value, and their score where it does not depend on them.
    """
    lines: list[tuple[str, list[tuple[str, str]], float]] = []
    calls: dict[str, list[tuple[str, str]]] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                calls[part.tool_call_id] = [("", value) for _, value in needed(leaves(arguments_of(part)))]
                lines.append((f"{part.tool_name}:", calls[part.tool_call_id], 0.0))
            elif isinstance(part, TextPart):
                lines.append(("said", [("", word) for word in identifiers(part.content)], 0.0))
            elif isinstance(part, ToolReturnPart) and part.tool_call_id in calls:
                calls[part.tool_call_id] += _outcome(result_text(part))
            elif isinstance(part, UserPromptPart):
                text = " ".join(user_text(part).split())
                short = text[:_USER_CHARS].rsplit(" ", 1)[0] + "…" if len(text) > _USER_CHARS else text
                lines.append(("user:", [("", short)] if short else [], _USER))
                lines.append(("", [("", word) for word in identifiers(text) if word not in short], 0.0))
    return lines


def _outcome(text: str) -> list[tuple[str, str]]:
    value = parsed(text)
    if value is not None:
        return needed(leaves(value))
    if len(text) <= _USER_CHARS:
        return [("", short)] if (short := " ".join(text.split())) else []
    return [("", word) for word in identifiers(text)]


def _worth(value: str, key: str, said: str) -> float:
    """How much a value would be missed: by what it looks like, and more if somebody spoke of it or of a part of it."""
    worth = float(weight(value, key))
    parts = (part for part in re.split(r"[_\W]+", value) if len(part) > 3 and any(map(str.isdigit, part)))
    spoken = (len(value) > 1 and value in said) or any(part in said for part in parts)
    return worth + (_SAID_AGAIN if spoken else 0.0)


def _fresh(rows: Sequence[_Row], visible: str) -> Iterator[_Piece]:
    """Each value once, where it was seen last, and none that can be read elsewhere anyway."""
    seen: set[str] = set()
    for row in reversed(rows):
        for piece in row.pieces:
            known = len(piece.value) > 2 and piece.value in visible
            if piece.value not in seen and not known:
                seen.add(piece.value)
                yield piece


def _within(pieces: Sequence[_Piece], rows: Sequence[_Row], characters: int) -> list[_Piece]:
    taken: list[_Piece] = []
    heads: set[int] = set()
    keys: set[tuple[int, str]] = set()
    for piece in pieces:
        cost = len(piece.value) + 2
        cost += 0 if piece.row in heads else len(rows[piece.row].head) + 2
        cost += 0 if (piece.row, piece.key) in keys else len(piece.key) + 2
        if cost > characters:
            continue
        characters -= cost
        heads.add(piece.row)
        keys.add((piece.row, piece.key))
        taken.append(piece)
    return taken


def _message(rows: Sequence[_Row], chosen: Sequence[_Piece]) -> ModelRequest:
    wanted = {(piece.row, piece.key, piece.value) for piece in chosen}
    lines: list[str] = []
    last = ""
    for row in rows:
        kept = [(piece.key, piece.value) for piece in row.pieces if (piece.row, piece.key, piece.value) in wanted]
        if kept:
            # Ten calls of one tool in a row name it once.
            lines.append(f"{'-' if row.head == last else row.head} {by_key(kept)}".strip())
            last = row.head
    return summary_message("\n".join(lines))


def summary_message(text: str) -> ModelRequest:
    """The text in its section. No sign in it opens a tag: what people and tools wrote can not end the section."""
    body = text.replace("<", "&lt;")
    content = element(SUMMARY, f"\n{body}\n", of=_OF)
    return ModelRequest(parts=[UserPromptPart(content=content, timestamp=_ALWAYS)])


def summary_in(messages: Sequence[ModelMessage]) -> tuple[int, str] | None:
    """Where a summary of ours stands, and its text."""
    opening, closing = f'<{SUMMARY} of="{_OF}">\n', f"\n</{SUMMARY}>"
    for place, message in enumerate(messages):
        part = message.parts[0] if len(message.parts) == 1 else None
        if isinstance(part, UserPromptPart) and isinstance(part.content, str) and part.content.startswith(opening):
            return place, part.content.removeprefix(opening).removesuffix(closing).replace("&lt;", "<")
    return None
