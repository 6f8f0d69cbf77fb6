"""Decodes text in base64, hex, rot13, percent encoding, reversed text, leetspeak and others."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import quopri
import re
import string
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final
from urllib.parse import unquote

from annabelle.language.lexicon import load_lexicon

_MOST_RUNS: Final = 40
_LONGEST_RUN: Final = 20_000
_SEARCHED: Final = 100_000
_READABLE: Final = 0.9
_SHORT: Final = 4_000
_AROUND: Final = 400
_RETOLD_PART: Final = 32

ATTACK_WORDS: Final = load_lexicon("guardian").words("attack_words")
"""Words common in attacks. A cipher is undone if it yields one of them."""

_BASE64: Final = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}+={0,2}")
_BASE32: Final = re.compile(r"(?<![A-Za-z0-9])[A-Z2-7]{24,}+={0,6}")
_HEX: Final = re.compile(r"(?<![0-9A-Za-z])(?:0x)?[0-9a-fA-F]{2}(?:(?:0x|[:,\s]|,\s0x|\s0x)?[0-9a-fA-F]{2}){11,}")
_BINARY: Final = re.compile(r"(?<!\w)(?:[01]{8}\s?){6,}")
_NUMBERS: Final = re.compile(r"(?<![\d.])\d{2,3}(?:[ ,;]{1,2}\d{2,3}){8,}(?!\d)")
_PERCENT: Final = re.compile(r"(?:%[0-9a-fA-F]{2}[^\s%]{0,12}){4,}")
_ENTITIES: Final = re.compile(r"(?:&#x?[0-9a-fA-F]{2,6};?){4,}")
_QUOTED: Final = re.compile(r"(?:=[0-9A-F]{2}){5,}")
_MORSE: Final = re.compile(r"(?:[.\-]{1,6}[ /|]{1,3}){8,}[.\-]{1,6}")
_LEET: Final = re.compile(r"\b(?=\w{0,19}[a-zA-Z])(?=[\w@$!|]{0,19}[013457@$!|])[\w@$!|]{4,20}")
_WORD: Final = re.compile(r"[A-Za-z]{4,20}")
_FROM_LEET: Final = str.maketrans("013457@$!|", "oieastasil")
_ATBASH: Final = str.maketrans(string.ascii_letters, string.ascii_lowercase[::-1] + string.ascii_uppercase[::-1])
_MORSE_SIGNS: Final = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
)
_FROM_MORSE: Final[dict[str, str]] = dict(zip(_MORSE_SIGNS.split(), string.ascii_lowercase, strict=True))


def decode_pieces(text: str) -> tuple[list[str], str]:
    """Return the readable decoded texts, and the text without the encoded parts."""
    found: list[str] = []
    spans: list[tuple[int, int]] = []
    for sign, expression, decode in _RUNS:
        if sign not in text:
            continue
        for count, run in enumerate(expression.finditer(text)):
            if count == _MOST_RUNS:
                break
            plain = decode(run.group()[:_LONGEST_RUN])
            if plain is not None and is_readable(plain):
                found.append(plain)
                spans.append(run.span())
    return found, _remove_spans(text, spans) if spans else text


def _remove_spans(text: str, spans: list[tuple[int, int]]) -> str:
    kept: list[str] = []
    place = 0
    for start, end in sorted(spans):
        kept.append(text[place:start])
        place = max(place, end)
    return " ".join([*kept, text[place:]])


def undo_ciphers(text: str) -> Iterator[str]:
    """Yield deciphered text for ciphers that reveal attack words. Of long texts, only parts, to bound the work."""
    words = [(one.start(), one.group().lower()) for one in _WORD.finditer(text[:_SEARCHED])]
    for telling, undo in _CIPHERS:
        places = [place for place, word in words if word in telling]
        if places:
            yield undo(_around(text, places))
    leet = ((one.start(), one.group()) for one in _LEET.finditer(text[:_SEARCHED]))
    places = [place for place, word in leet if word.translate(_FROM_LEET).lower() in ATTACK_WORDS]
    if places:
        yield _around(text, places).translate(_FROM_LEET)


def _around(text: str, places: list[int]) -> str:
    if len(text) <= _SHORT:
        return text
    most = max(_SHORT, len(text) // _RETOLD_PART) // (3 * _AROUND)
    apart = [place for before, place in pairwise((-_AROUND, *places)) if place // _AROUND > before // _AROUND]
    chosen = apart[:: -(-len(apart) // most)]  # from all over the text
    return "\n".join(text[max(0, place // _AROUND * _AROUND - _AROUND) : place + _AROUND] for place in chosen)


def is_readable(text: str) -> bool:
    """Whether a text consists of words rather than random letters."""
    if len(text) < 6:
        return False
    sample = text[:2000]
    good = sum(sign.isalpha() or sign in " .,;:!?'\"\n-@/()" for sign in sample)
    blanks = sum(sign.isspace() for sign in sample)
    in_words = blanks >= len(sample) / 16 or len(sample) < 24
    return good >= _READABLE * len(sample) and in_words


def _decode_utf8(blob: bytes) -> str | None:
    try:
        return blob.decode()
    except UnicodeDecodeError:
        return None


def _decode_base64(run: str) -> str | None:
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    if body.isalpha() and (body.islower() or body.isupper() or len(body) < 20):
        return None  # a long word
    body = body[: len(body) - (len(body) % 4 == 1)]
    try:
        return _decode_utf8(base64.b64decode(body + "=" * (-len(body) % 4)))
    except (binascii.Error, ValueError):
        return None


def _decode_base32(run: str) -> str | None:
    body = run.rstrip("=")
    try:
        return _decode_utf8(base64.b32decode(body + "=" * (-len(body) % 8)))
    except (binascii.Error, ValueError):
        return None


def _decode_hex(run: str) -> str | None:
    digits = re.sub(r"0x|[:,\s]", "", run)
    return _decode_utf8(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _decode_binary(run: str) -> str | None:
    bits = re.sub(r"\s", "", run)
    return _decode_utf8(bytes(int(bits[place : place + 8], 2) for place in range(0, len(bits) - 7, 8)))


def _decode_numbers(run: str) -> str | None:
    numbers = [int(number) for number in re.findall(r"\d+", run)]
    return None if max(numbers) > 126 else _decode_utf8(bytes(numbers))


def _decode_quoted(run: str) -> str | None:
    return _decode_utf8(quopri.decodestring(run.encode("utf-8", errors="replace")))


def _decode_morse(run: str) -> str | None:
    words = re.split(r"\s*[/|]\s*|\s{2,}", run)
    return " ".join("".join(_FROM_MORSE.get(sign, "") for sign in word.split()) for word in words)


_RUNS: Final[tuple[tuple[str, re.Pattern[str], Callable[[str], str | None]], ...]] = (
    # required substring, pattern, decoder
    ("", _BASE64, _decode_base64),
    ("", _BASE32, _decode_base32),
    ("", _HEX, _decode_hex),
    ("01", _BINARY, _decode_binary),
    ("1", _NUMBERS, _decode_numbers),
    ("%", _PERCENT, unquote),
    ("&#", _ENTITIES, html.unescape),
    ("=", _QUOTED, _decode_quoted),
    (".-", _MORSE, _decode_morse),
)
_ROT13: Final = frozenset(codecs.encode(word, "rot13") for word in ATTACK_WORDS)
_BACKWARDS: Final = frozenset(word[::-1] for word in ATTACK_WORDS)
_MIRRORED: Final = frozenset(word.translate(_ATBASH) for word in ATTACK_WORDS)
_CIPHERS: Final[tuple[tuple[frozenset[str], Callable[[str], str]], ...]] = (
    (_ROT13, lambda text: codecs.decode(text, "rot13")),
    (_BACKWARDS, lambda text: text[::-1]),
    (_MIRRORED, lambda text: text.translate(_ATBASH)),
)
