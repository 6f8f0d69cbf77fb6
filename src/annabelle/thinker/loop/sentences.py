"""An answer in sentences, without what is quoted in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_FENCE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_QUOTED: Final = re.compile(r"\"[^\"\n]{1,2000}\"|“[^”\n]{1,2000}”|«[^»\n]{1,2000}»|„[^“”\n]{1,2000}[“”]")
_INLINE: Final = re.compile(r"`([^`\n]{1,500})`")
_QUOTE_LINE: Final = re.compile(r"^[^\S\n]*>.*$", re.MULTILINE)
_END: Final = re.compile(r"(?<=[.!?…])[\"'”»)*_]*\s+|\n+|;\s")
_MOST: Final = 400
_LONGEST: Final = 600


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence in lower case, with how much else the answer has to say."""

    text: str
    is_question: bool
    rest: int
    """Characters that follow it."""
    whole: int
    """Characters of the whole answer."""
    has_code: bool


def sentences_of(text: str) -> list[Sentence]:
    """The sentences that are the answer's own words; quotes and code are left out."""
    has_code = "```" in text
    own = _QUOTED.sub(" it ", _QUOTE_LINE.sub("", _FENCE.sub("\n", text.replace("’", "'"))))
    own = _INLINE.sub(r"\1", own).replace("**", "").replace("__", "").strip()
    sentences: list[Sentence] = []
    position = 0
    for piece in _END.split(own)[:_MOST]:
        position = own.find(piece, position) + len(piece)
        plain = " ".join(piece.lower().split())[:_LONGEST].lstrip("-*•# ")
        if plain:
            rest = len(text.strip()) - position
            sentences.append(Sentence(plain, plain.rstrip("*_ ").endswith("?"), rest, len(text.strip()), has_code))
    return sentences


def squeezed(text: str) -> str:
    """Letters only, to see whether one text repeats another."""
    return "".join(character for character in text.lower() if character.isalnum())
