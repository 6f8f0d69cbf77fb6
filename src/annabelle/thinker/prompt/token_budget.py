"""Token budgets of the prompt's layers, and how text is cut to them (CTX-09)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

PERSONA_TOKENS: Final = 600
INSTRUCTIONS_TOKENS: Final = 1_000
PROFILE_TOKENS: Final = 300
SUMMARY_TOKENS: Final = 400
CHAT_TOKENS: Final = 25
EARLIER_TOKENS: Final = 300
PLAYBOOKS_TOKENS: Final = 500
SKILLS_TOKENS: Final = 600
SKILL_BODY_TOKENS: Final = 2_000
HINT_TOKENS: Final = 60
WORKSPACE_TOKENS: Final = 5_000
THINKING_TOKENS: Final = 500
UNASKED_TOKENS: Final = 400
MEMORIES_TOKENS: Final = 250
_BYTES_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """Estimate tokens, by bytes: a non-Latin letter costs more than a Latin one."""
    return -(-len(text.encode(errors="replace")) // _BYTES_PER_TOKEN)


def truncate_to_tokens(text: str, most: int) -> str:
    """The beginning of a text, cut to `most` tokens with an ellipsis."""
    if count_tokens(text) <= most:
        return text
    room = max(0, most * _BYTES_PER_TOKEN - len("…".encode()))
    return text.encode(errors="replace")[:room].decode(errors="ignore").rstrip() + "…"


@dataclass(frozen=True, slots=True)
class PromptLayer:
    """A layer of the prompt. `left_out` counts pieces, or tokens of a single text, that did not fit."""

    text: str = ""
    shown: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class FittedPieces:
    """The pieces that fit, in order, and how many did not."""

    pieces: tuple[str, ...]
    left_out: int = 0


def fit_pieces(pieces: Iterable[str], most: int) -> FittedPieces:
    """The first pieces that fit. Only whole ones: half a fact may say the opposite."""
    kept: list[str] = []
    used = left_out = 0
    for piece in pieces:
        cost = count_tokens(piece) + 1
        if used + cost > most:
            left_out += 1
        else:
            kept.append(piece)
            used += cost
    return FittedPieces(tuple(kept), left_out)
