"""Foreign text as a person may safely look at it: nothing unseen in it, and nothing that moves what is seen."""

from __future__ import annotations

import json
import unicodedata
from typing import Final

# What is written between the lines, turns the writing around or can not be seen at all.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Blank like a space, and taken for a letter by whoever compares.
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def visible(text: str) -> str:
    """The text with everything spelled out that a reader would not see or that moves what they see."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(char) if hidden(char) else char for char in text)


def visible_data(value: object) -> str:
    """A value as JSON on one line, with nothing unseen in it."""
    return visible(json.dumps(value, ensure_ascii=False))


def hidden(char: str) -> bool:
    """Whether a reader would not see this character, or not see it for what it is."""
    return unicodedata.category(char) in _UNSEEN or char in _BLANK


def _spelled(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
