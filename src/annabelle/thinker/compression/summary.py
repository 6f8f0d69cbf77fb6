"""Summarises dropped messages without a model: what was asked, which tools were called, and their results.

It mainly keeps values that later tool calls may need, the likeliest first. A value that the conversation still shows is
not repeated.
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

from annabelle.thinker.compression.abbreviation import (
    find_identifiers,
    format_by_key,
    identifier_weight,
    iterate_leaves,
    needed_pairs,
    parse_json_text,
)
from annabelle.thinker.compression.message_text import call_arguments, result_text, user_prompt_text
from annabelle.thinker.prompt.escape import SUMMARY, make_element

_SUMMARY_OF: Final = "what was left out of this conversation"
# Constant, so that the same messages give the same summary.
_FIXED_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_USER_CHARS: Final = 100
_FEWEST_TOKENS: Final = 40
_SAID_AGAIN: Final = 1.5
_USER: Final = 3.0

CountTokens = Callable[[Sequence[ModelMessage]], int]


@dataclass(frozen=True, slots=True)
class _SummaryPiece:
    """A value a summary may contain, the line it belongs to, and its importance."""

    row: int
    key: str
    value: str
    score: float


@dataclass(frozen=True, slots=True)
class _SummaryRow:
    head: str
    pieces: tuple[_SummaryPiece, ...]


def build_summary(
    dropped: Sequence[Sequence[ModelMessage]], visible: str, said: str, room: int, count: CountTokens
) -> ModelRequest | None:
    """A message that replaces the dropped ones, with at most `room` tokens; None if that is too little.

    `visible` is the text that stays, `said` all text of the conversation but tool results.
    """
    rows = list(_make_rows(dropped, said))
    chosen = sorted(_new_pieces(rows, visible), key=lambda piece: (-piece.score, -piece.row))
    characters = int((room - _FEWEST_TOKENS) * 3.6)
    while room >= _FEWEST_TOKENS and characters > 0 and chosen:
        chosen = _fit_characters(chosen, rows, characters)
        if not chosen:
            break
        message = _render_summary(rows, chosen)
        if count([message]) <= room:
            return message
        characters = int(characters * 0.85)
    return None


def _make_rows(dropped: Sequence[Sequence[ModelMessage]], said: str) -> Iterator[_SummaryRow]:
    told = [row for messages in dropped for row in _describe_messages(messages)]
    for number, (head, pairs, base) in enumerate(told):
        age = number / max(1, len(told))
        pieces = (
            _SummaryPiece(number, key, value, (base or _score_value(value, key, said)) + age) for key, value in pairs
        )
        yield _SummaryRow(head, tuple(pieces))


def _describe_messages(messages: Sequence[ModelMessage]) -> list[tuple[str, list[tuple[str, str]], float]]:
    """One line for each call with its result, and for each text of the user and the model.

    A line has a beginning, pairs of key and value, and a score if it does not depend on the values.
    """
    lines: list[tuple[str, list[tuple[str, str]], float]] = []
    calls: dict[str, list[tuple[str, str]]] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                calls[part.tool_call_id] = [
                    ("", value) for _, value in needed_pairs(iterate_leaves(call_arguments(part)))
                ]
                lines.append((f"{part.tool_name}:", calls[part.tool_call_id], 0.0))
            elif isinstance(part, TextPart):
                lines.append(("said", [("", word) for word in find_identifiers(part.content)], 0.0))
            elif isinstance(part, ToolReturnPart) and part.tool_call_id in calls:
                calls[part.tool_call_id] += _result_pairs(result_text(part))
            elif isinstance(part, UserPromptPart):
                text = " ".join(user_prompt_text(part).split())
                short = text[:_USER_CHARS].rsplit(" ", 1)[0] + "…" if len(text) > _USER_CHARS else text
                lines.append(("user:", [("", short)] if short else [], _USER))
                lines.append(("", [("", word) for word in find_identifiers(text) if word not in short], 0.0))
    return lines


def _result_pairs(text: str) -> list[tuple[str, str]]:
    value = parse_json_text(text)
    if value is not None:
        return needed_pairs(iterate_leaves(value))
    if len(text) <= _USER_CHARS:
        return [("", short)] if (short := " ".join(text.split())) else []
    return [("", word) for word in find_identifiers(text)]


def _score_value(value: str, key: str, said: str) -> float:
    """The importance of a value: by its form, and higher if it or a part of it was mentioned."""
    worth = float(identifier_weight(value, key))
    parts = (part for part in re.split(r"[_\W]+", value) if len(part) > 3 and any(map(str.isdigit, part)))
    spoken = (len(value) > 1 and value in said) or any(part in said for part in parts)
    return worth + (_SAID_AGAIN if spoken else 0.0)


def _new_pieces(rows: Sequence[_SummaryRow], visible: str) -> Iterator[_SummaryPiece]:
    """Each value once, where it occurred last, without values that are still visible."""
    seen: set[str] = set()
    for row in reversed(rows):
        for piece in row.pieces:
            known = len(piece.value) > 2 and piece.value in visible
            if piece.value not in seen and not known:
                seen.add(piece.value)
                yield piece


def _fit_characters(
    pieces: Sequence[_SummaryPiece], rows: Sequence[_SummaryRow], characters: int
) -> list[_SummaryPiece]:
    taken: list[_SummaryPiece] = []
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


def _render_summary(rows: Sequence[_SummaryRow], chosen: Sequence[_SummaryPiece]) -> ModelRequest:
    wanted = {(piece.row, piece.key, piece.value) for piece in chosen}
    lines: list[str] = []
    last = ""
    for row in rows:
        kept = [(piece.key, piece.value) for piece in row.pieces if (piece.row, piece.key, piece.value) in wanted]
        if kept:
            # Consecutive calls of one tool name it once.
            lines.append(f"{'-' if row.head == last else row.head} {format_by_key(kept)}".strip())
            last = row.head
    return make_summary_message("\n".join(lines))


def make_summary_message(text: str) -> ModelRequest:
    """The text in its section, escaped so that it cannot end the section."""
    body = text.replace("<", "&lt;")
    content = make_element(SUMMARY, f"\n{body}\n", of=_SUMMARY_OF)
    return ModelRequest(parts=[UserPromptPart(content=content, timestamp=_FIXED_TIME)])


def find_summary(messages: Sequence[ModelMessage]) -> tuple[int, str] | None:
    """The position and text of the summary."""
    opening, closing = f'<{SUMMARY} of="{_SUMMARY_OF}">\n', f"\n</{SUMMARY}>"
    for place, message in enumerate(messages):
        part = message.parts[0] if len(message.parts) == 1 else None
        if isinstance(part, UserPromptPart) and isinstance(part.content, str) and part.content.startswith(opening):
            return place, part.content.removeprefix(opening).removesuffix(closing).replace("&lt;", "<")
    return None
