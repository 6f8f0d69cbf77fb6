"""Finds private values in a text that goes out, however they are written (POL-04).

A PIN can be spelled out, spaced, reversed or encoded. Every reading of the text is compared with what was read in
private, in one canonical form: the letters and digits alone.
"""

from __future__ import annotations

import base64
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import accumulate
from typing import Final
from urllib.parse import unquote

from annabelle.language.lexicon import Lexicon, join_phrases, load_lexicon
from annabelle.policy.person_words import normalize_text

_BETWEEN: Final = re.compile(r"[\s,;:!?()\[\]{}<>\"']+|[.'-]+(?=\s|$)")
_RUN: Final = 6
_LONG: Final = 16
_DIGITS: Final = 4
_DIGITS_OF_SEVERAL: Final = 8
"""Of private groups side by side, such as those of an IBAN. Fewer digits may be a day or an hour."""
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/=_-]{32,}")
_CODED: Final = re.compile(r"[A-Za-z0-9+/_-]{4,}")
_GROUP: Final = re.compile(r"[^\W_]+")
_NUMBER_OR_LETTER: Final = r"(?:[^\W\d_]*\d[^\W_]*|[^\W_](?![^\W_]))"
_RUN_OF_GROUPS: Final = re.compile(rf"(?<![^\W_]){_NUMBER_OR_LETTER}(?:[\W_]{{1,3}}{_NUMBER_OR_LETTER})*")
_LONGEST: Final = 40
_DEEPEST: Final = 2
_BASES: Final = (2, 8, 16)
_HEX: Final = re.compile(r"(?<![^\W_])(?:0[xo])?[0-9a-f]{3,}(?![^\W_])")


def leaks_private_text(texts: Iterable[str], private: Iterable[str], known: Iterable[str]) -> bool:
    """Whether the texts contain identifying pieces of private texts that are not already known."""
    texts, private, known = list(texts), list(private), list(known)
    content = _normalize_words(private)
    if not content.strip():
        return False
    said: str | None = None
    for text in texts:
        telling = [piece for piece in _find_identifying_pieces(text) if f" {piece} " in content]
        encoded = [found.group().casefold() for found in _ENCODED.finditer(text)]
        if telling or encoded:
            said = said if said is not None else _normalize_words(known)
            # Encoded text cannot be checked, so it may contain anything.
            if any(f" {piece} " not in said for piece in telling) or any(piece not in said for piece in encoded):
                return True
    return holds_private_value(texts, private, known)


def holds_private_value(texts: Iterable[str], private: Iterable[str], known: Iterable[str]) -> bool:
    """Whether some reading of the texts has a private number, or was encoded and has a private word."""
    kept = "\n".join(private)
    if not kept.strip():
        return False
    texts = list(texts)
    readings = {reading for text in {*texts, "\n".join(texts)} for reading in _read(text)}
    values = {value for reading, _ in readings for value in _find_values(reading)}
    words = {word for reading, hidden in readings if hidden for word in _find_words(reading)}
    found = (values & _find_private_values(kept)) | (words and words & _find_words(kept))
    if not found:
        return False
    said = "\n".join(known)
    return not found <= _find_private_values(said) | _find_words(said)


def _normalize_words(texts: Iterable[str]) -> str:
    return f" {_BETWEEN.sub(' ', normalize_text(chr(10).join(texts)))} "


def _find_identifying_pieces(text: str) -> set[str]:
    """Numbers, addresses, long words, and word sequences too long to be a coincidence."""
    words = _normalize_words([text]).split()
    single = {
        word
        for word in words
        if _count_digits(word) >= _DIGITS or "@" in word or (len(word) >= _LONG and "/" not in word)
    }
    return single | {" ".join(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}


def _count_digits(text: str) -> int:
    return sum(sign.isdigit() for sign in text)


def _find_words(text: str) -> set[str]:
    return {word for word in _GROUP.findall(normalize_text(text)) if len(word) >= _DIGITS}


def _find_private_values(text: str) -> set[str]:
    """Numbers of one group, and long ones of several."""
    return {
        value
        for value, parts in _join_groups(_plain(text))
        if _count_digits(value) >= (_DIGITS if parts == 1 else _DIGITS_OF_SEVERAL)
    }


def _find_values(reading: str) -> set[str]:
    """What the reading may stand for: its numbers joined, backwards, and in other bases."""
    joined = {value for value, _ in _join_groups(reading)}
    joined.add("".join(sign for sign in reading if sign.isdigit()))  # "4 apples, 7 pears, 1 fig and 1 plum"
    based = (_to_number(group, base) for group in set(_HEX.findall(reading)) for base in _BASES)
    every = joined | {str(number) for number in based if number is not None}
    return {form for value in every if _count_digits(value) >= _DIGITS for form in (value, value[::-1])}


def _join_groups(text: str) -> Iterator[tuple[str, int]]:
    """Each stretch of groups side by side as one value, and of how many groups it is."""
    for run in _RUN_OF_GROUPS.findall(text):
        groups = _GROUP.findall(run) if _count_digits(run) >= _DIGITS else []
        for start in range(len(groups)):
            for parts, value in enumerate(accumulate(groups[start : start + _LONGEST]), 1):
                if len(value) > _LONGEST:
                    break
                yield value, parts


def _to_number(group: str, base: int) -> int | None:
    try:
        return int(group[:_LONGEST], base)
    except ValueError:
        return None


def _read(text: str, depth: int = 0, *, hidden: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield every reading of a text in canonical letters, and whether it was encoded."""
    spelled = _number_words().to_digits(_plain(text))
    yield spelled, hidden
    yield codecs.encode(spelled, "rot13"), False
    if depth < _DEEPEST:
        for decoded in dict.fromkeys(map(str.strip, _decode(text))):
            if len(decoded) >= _DIGITS and decoded.isprintable():
                yield from _read(decoded, depth + 1, hidden=True)


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold()
    return text if text.isascii() else "".join(str(unicodedata.digit(sign, sign)) for sign in text)


def _decode(text: str) -> Iterator[str]:
    """Yield what parts of a text are the code of."""
    unquoted = unquote(html.unescape(text))
    if unquoted != text:
        yield unquoted
    codes = {code for run in _CODED.findall(text) for code in (run, *re.split(r"[/_-]", run))}
    for code in sorted(codes):
        for decode, block in _DECODERS:
            with suppress(ValueError):
                yield decode(code + "=" * (-len(code) % block)).decode()
    for run in _RUN_OF_GROUPS.findall(text.casefold()):
        for base in (10, *_BASES):
            numbers = (_to_number(group, base) or 0 for group in _GROUP.findall(run))
            yield "".join(chr(number) if 32 < number < 127 else " " for number in numbers)


_DECODERS: Final[tuple[tuple[Callable[[str], bytes], int], ...]] = (
    (base64.urlsafe_b64decode, 4),
    (lambda code: base64.b32decode(code, casefold=True), 8),
    (bytes.fromhex, 1),
)


class _NumberWords:
    """Numbers in words, of every language (language/*/numbers.toml)."""

    def __init__(self, lexicon: Lexicon) -> None:
        values = (*range(20), *range(20, 100, 10))
        rows = [row for file in lexicon.files for row in zip(file.phrases("values"), values, strict=True)]
        self._values = {word.casefold(): value for phrase, value in rows for word in phrase.split("|")}
        # The longest first, so that "sixteen" is not six.
        parts = sorted({*self._values, *lexicon.words("between")}, key=len, reverse=True)
        part, number = join_phrases(parts), join_phrases(word for word in parts if word in self._values)
        unit_first = lexicon.alternation("unit_first")
        self._part = re.compile(part)
        self._unit_first = re.compile(rf"({number}){unit_first}({number})")
        self._numeral = re.compile(rf"\b{part}(?:[\s-]*{part})*\b")

    def to_digits(self, text: str) -> str:
        """`forty-seven eleven` is 47 11."""
        return self._numeral.sub(self._join, text)

    def _join(self, numeral: re.Match[str]) -> str:
        parts = self._part.findall(self._unit_first.sub(r"\2\1", numeral.group()))
        values: list[int] = []
        for value in (self._values[part] for part in parts if part in self._values):
            if values and values[-1] >= 20 and values[-1] % 10 == 0 and 0 < value < 10:
                values[-1] += value
            else:
                values.append(value)
        return " ".join(map(str, values)) or numeral.group()


@cache
def _number_words() -> _NumberWords:
    return _NumberWords(load_lexicon("numbers"))
