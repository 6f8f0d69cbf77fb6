"""Long texts in parts that Telegram takes, cut where a reader would pause."""

from __future__ import annotations

MOST = 4096
"""Telegram's limit for one message, in UTF-16 units; a character outside the first plane takes two."""

_PAUSES = ("\n\n", "\n", ". ", " ")


def split(text: str, most: int = MOST) -> list[str]:
    """The parts in order, none of them longer than one message may be or empty. Only blanks at the cuts get lost."""
    parts: list[str] = []
    rest = text.strip()
    while rest:
        fits = _fitting(rest, most)
        if fits == len(rest):
            parts.append(rest)
            break
        end = _pause(rest, fits)
        parts.append(rest[:end].rstrip())
        rest = rest[end:].lstrip("\n ")
    return parts


def _fitting(text: str, most: int) -> int:
    """How many characters fit into `most` UTF-16 units."""
    units = 0
    for position, char in enumerate(text):
        units += 2 if ord(char) > 0xFFFF else 1
        if units > most:
            return position
    return len(text)


def _pause(text: str, fits: int) -> int:
    """Where to cut: behind the last pause in the second half of what fits, else where it is full."""
    for pause in _PAUSES:
        found = text.rfind(pause, fits // 2, fits)
        if found > 0:
            return found + len(pause)
    return fits
