"""Characters as a reader sees them: what is invisible goes, what only looks like a letter becomes that letter."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_INVISIBLE: Final = dict.fromkeys(
    [
        0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0, 0xFFFC,
        *range(0x180B, 0x1810),
        *range(0x200B, 0x2010),  # zero width, and marks of direction
        *range(0x202A, 0x202F),  # embeddings and overrides of direction
        *range(0x2060, 0x2070),
        *range(0xFFF9, 0xFFFC),
    ]
)  # fmt: skip
_TAGS: Final = re.compile("[\U000e0000-\U000e007f]+")
_VARIANTS: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
_BITS: Final = re.compile("[\u2062\u2064]{16,}")
"""Text written in two invisible operators, eight to a character."""
_MARKS: Final = re.compile("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
_ESCAPED: Final = (("\\n", "\n"), ("\\t", " "), ('\\"', '"'), ("\\'", "'"), ("\\\\", "\\"))
_SPACE: Final = re.compile(r"[^\S\n]{2,}")
_LINES: Final = re.compile(r"[^\S\n]?\n\s*")
_LOOKALIKES: Final = re.compile("[Ͱ-ϿЀ-ԯ԰-֏Ꭰ-Ᏼɑɡıℓǃʀꓲꓳ]")
_WORD: Final = re.compile(r"[^\W\d_]+")
_SPACED: Final = re.compile(r"(?:(?<!\w)\w[ .\-_*|/·,\n]{1,3}){8,}\w(?!\w)")
_SPACED_LETTER: Final = re.compile(r"\w[ .\-_*|/·,\n]*")
_LATIN: Final = str.maketrans(
    "аɑαеєоοрсϲуυхχіιјѕԁһӏԛԝвнкмтгАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧꓲꓳոսցԍʀᎪᎬᎷᎢɡıℓǃ",
    "aaaeeoopccyuxxiijsdhlqwbhkmtrABEKMHOPCTYXIJSABEZHIKMNOPTYXIOnugGRAEMTgill",
)


def as_seen(text: str) -> str:
    """The text in plain characters, runs of blanks made one. Hidden alphabets are written out in place."""
    if "\\" in text:
        text = _unescaped(_unescaped(text))
    if not text.isascii():
        text = _as_seen(text)
    text = _SPACE.sub(" ", _SPACED.sub(_joined_letters, text))
    return _LINES.sub("\n", text) if "\n" in text else text


def _unescaped(text: str) -> str:
    """Text that was written as a string of a program or of JSON, as it is read."""
    if "\\u" in text or "\\x" in text:
        text = _ESCAPE.sub(lambda one: chr(int(one.group(1) or one.group(2), 16)), text)
    for written, read in _ESCAPED:
        text = text.replace(written, read)
    return text


def _joined_letters(found: re.Match[str]) -> str:
    """Letters with one sign between them; more than one ends a word."""
    parts = [part.group() for part in _SPACED_LETTER.finditer(found.group())]
    return "".join(part[0] + (" " if len(part) > 2 else "") for part in parts).strip()


def _as_seen(text: str) -> str:
    text = _VARIANTS.sub(_from_variants, _TAGS.sub(_from_tags, text))
    if "\u2062" in text or "\u2064" in text:
        text = _BITS.sub(_from_bits, text)
    text = unicodedata.normalize("NFKC", text.translate(_INVISIBLE))
    text = _MARKS.sub("", text)  # an accent that belongs to its letter is part of it by now
    return _WORD.sub(_in_one_script, text) if _LOOKALIKES.search(text) else text


def _in_one_script(found: re.Match[str]) -> str:
    """A word of two alphabets is meant in Latin letters; one of another alphabet alone is left to its language."""
    word = found.group()
    mixed = not word.isascii() and any(sign.isascii() for sign in word)
    return word.translate(_LATIN) if mixed else word


def _from_tags(found: re.Match[str]) -> str:
    plain = "".join(chr(ord(sign) - 0xE0000) for sign in found.group())
    return "".join(sign for sign in plain if " " <= sign <= "~")


def _from_variants(found: re.Match[str]) -> str:
    """Variation selectors number the bytes from 0 to 255; one alone is an emoji's."""
    signs = found.group()
    if len(signs) < 4:
        return ""
    numbers = [ord(sign) - 0xFE00 if ord(sign) < 0xFE10 else ord(sign) - 0xE0100 + 16 for sign in signs]
    return f" {bytes(numbers).decode('latin-1')} "


def _from_bits(found: re.Match[str]) -> str:
    bits = "".join("1" if sign == "\u2064" else "0" for sign in found.group())
    return f" {''.join(chr(int(bits[place : place + 8], 2)) for place in range(0, len(bits) - 7, 8))} "
