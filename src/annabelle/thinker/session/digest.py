"""Sums up a conversation by rules alone: what the user wrote, for when no model can or will do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from annabelle.thinker.context.budget import shortened, tokens
from annabelle.thinker.session.records import TurnRecord

COMPACTION_TOKENS: Final = 400
CLOSING_TOKENS: Final = 120
_MESSAGE_TOKENS: Final = 40


def of_older_turns(turns: Sequence[TurnRecord], previous: str) -> str:
    """The summary so far and the user's messages since; what does not fit is left out in the middle."""
    asked = _asked(turns)
    opening = [shortened(previous, COMPACTION_TOKENS // 2)] if previous else asked[:1]
    room = COMPACTION_TOKENS - sum(tokens(line) + 1 for line in opening) - 1
    return "\n".join([*opening, *_latest(asked if previous else asked[1:], room)])


def of_conversation(turns: Sequence[TurnRecord], before: str) -> str:
    """What the user asked in it, behind what was summed up of it before."""
    asked = _asked(turns)
    opening = [shortened(" ".join(before.split()), CLOSING_TOKENS // 2)] if before else asked[:1]
    if not opening:
        return "A conversation without words of the user."
    lead = "" if before else "The user wrote: "
    room = CLOSING_TOKENS - tokens(lead + opening[0]) - 2
    return lead + " / ".join([*opening, *_latest(asked if before else asked[1:], room)])


def _asked(turns: Sequence[TurnRecord]) -> list[str]:
    lines = (" ".join(turn.user.split()) for turn in turns)
    return [shortened(line, _MESSAGE_TOKENS) for line in dict.fromkeys(lines) if line]


def _latest(lines: Sequence[str], room: int) -> list[str]:
    """The last lines that fit: what was asked last is what matters most."""
    kept: list[str] = []
    for line in reversed(lines):
        room -= tokens(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]
