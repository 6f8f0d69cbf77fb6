"""Unicode text: folding for search and comparison, splitting into words, and making invisible characters visible."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast

# Control, format, surrogate, private-use and unassigned characters, and line and paragraph separators.
_INVISIBLE_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Look like a space, but count as letters.
_BLANK_LETTERS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def escape_invisible(text: str) -> str:
    """Escapes every character that a reader would not see or that moves what they see."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape_character(char) if is_invisible(char) else char for char in text)


def escape_invisible_json(value: object) -> str:
    return escape_invisible(json.dumps(value, ensure_ascii=False))


def is_invisible(char: str) -> bool:
    """Whether a reader would not see this character, or mistake it for another."""
    return unicodedata.category(char) in _INVISIBLE_CATEGORIES or char in _BLANK_LETTERS


def read_line(text: str) -> str:
    """A text in one line; empty if nothing of it can be seen."""
    line = " ".join(text.split())
    return "" if all(char == " " or is_invisible(char) for char in line) else line


def _escape_character(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


# Invisible characters that text needs: tags in flags, joiners in emoji, emoji variation selectors, and joiners within
# words of some scripts.
_VISIBLE_USES: Final = (
    "(?P<meant>\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
    "|(?<=[\u00a9-\u3299\U0001f000-\U0001faff\ufe0f])\u200d(?=[\u2190-\u3299\U0001f000-\U0001faff])"
    "|(?<=[#*0-9\u00a9-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
    "|(?<=[\u0600-\u1cff])[\u200c\u200d](?=[\u0600-\u1cff]))"
)
_INVISIBLE_NAMES: Final = ("VARIATION SELECTOR", "FILLER", "GRAPHEME JOINER")


def remove_invisible(text: str) -> tuple[str, int]:
    """Removes invisible characters and returns the text and how many there were.

    Models read tags, joiners, selectors and direction marks like letters, so instructions can be hidden in them.
    """
    if text.isascii():
        return text, 0
    signs = "".join(sign for sign in set(text) if _has_no_shape(sign))
    if not signs:
        return text, 0
    expression = re.compile(f"{_VISIBLE_USES}|[{re.escape(signs)}]")
    kept = expression.sub(lambda found: found["meant"] or "", text)
    return kept, len(text) - len(kept)


def remove_invisible_json(value: object) -> tuple[object, int]:
    """Like `remove_invisible`, for every text in nested data, keys included."""
    if isinstance(value, str):
        return remove_invisible(value)
    if isinstance(value, dict):
        pairs = [
            (remove_invisible_json(key), remove_invisible_json(one))
            for key, one in cast("dict[object, object]", value).items()
        ]
        return {key[0]: one[0] for key, one in pairs}, sum(key[1] + one[1] for key, one in pairs)
    if isinstance(value, list | tuple):
        items = [remove_invisible_json(one) for one in cast("list[object]", value)]
        return [one for one, _ in items], sum(count for _, count in items)
    return value, 0


@lru_cache(maxsize=4096)
def _has_no_shape(sign: str) -> bool:
    """Whether a character is never drawn. Some format characters are, such as the Arabic number sign."""
    category = unicodedata.category(sign)
    if category == "Cf":
        return unicodedata.bidirectional(sign) != "AN"
    if category == "Cn":
        return "\U000e0000" <= sign < "\U000f0000"  # reserved for characters that are not drawn
    return category in ("Mn", "Lo") and any(part in unicodedata.name(sign, "") for part in _INVISIBLE_NAMES)


_COMBINING_ACCENTS = re.compile("[\u0300-\u036f]+")
# Letters without a Unicode decomposition.
_UNDECOMPOSED_LETTERS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d"}
)
# Japanese, Chinese, Korean and Thai have no spaces between words, so a run is indexed as overlapping pairs.
_UNSPACED_SCRIPT = re.compile(
    "[\u0e00-\u0e7f\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_WORD = re.compile(r"\w+")


def fold_for_search(text: str) -> str:
    """Folds text for indexing and queries. Accepts any string."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
        text = _COMBINING_ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold()).translate(
            _UNDECOMPOSED_LETTERS
        )
        text = _UNSPACED_SCRIPT.sub(_split_into_pairs, unicodedata.normalize("NFC", text))
    else:
        text = text.lower()
    return text.replace("\x00", " ")


def split_search_words(text: str) -> list[str]:
    """Returns the folded words of a text in order, with only letters and digits in them."""
    return _WORD.findall(fold_for_search(text).replace("_", " "))


def _split_into_pairs(run: re.Match[str]) -> str:
    letters = run.group()
    if len(letters) == 1:
        return f" {letters} "
    return f" {' '.join(letters[n : n + 2] for n in range(len(letters) - 1))} "


# Joiners, direction marks, soft hyphens, combining accents: they do not change which letter or digit it is.
_DROPPED_CATEGORIES = {"Cf", "Cc", "Mn", "Me"}
_LINE_CHARACTERS = {"\t", "\n", "\r"}
_PLAIN_PUNCTUATION = str.maketrans("‐‑‒–—−’‘“”„«»・", '------\'\'""""" ')


@dataclass(frozen=True, slots=True)
class FoldedText:
    """Folded text that can map positions back to the original."""

    text: str
    _positions: tuple[int, ...] | None

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Maps a span of the folded text to the original, including invisible characters within it."""
        if self._positions is None:
            return start, end
        return self._positions[start], self._positions[end - 1] + 1


def fold_with_positions(text: str) -> FoldedText:
    """Folds full-width, styled and accented characters to plain ones and all digits to 0-9; drops invisible ones."""
    if text.isascii() and text.isprintable():
        return FoldedText(text, None)
    known: dict[str, str] = {}
    pieces: list[str] = []
    positions: list[int] = []
    for position, character in enumerate(text):
        if (plain := known.get(character)) is None:
            plain = known[character] = _fold_character(character)
        pieces.append(plain)
        positions.extend([position] * len(plain))
    return FoldedText("".join(pieces), tuple(positions))


def _fold_character(character: str) -> str:
    if character in _LINE_CHARACTERS or (character.isascii() and character.isprintable()):
        return character
    kept = (
        one for one in unicodedata.normalize("NFKD", character) if unicodedata.category(one) not in _DROPPED_CATEGORIES
    )
    return "".join(_fold_letter(letter) for letter in "".join(kept).translate(_PLAIN_PUNCTUATION))


def _fold_letter(letter: str) -> str:
    if letter.isspace():
        return " "
    digit = unicodedata.decimal(letter, None)
    return letter if digit is None else str(digit)
