"""Text as a reader sees it: normalises look-alike characters and markup, and finds hidden text."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import Final

_INVISIBLE: Final = dict.fromkeys(
    [
        0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0, 0xFFFC,
        *range(0x180B, 0x1810),
        *range(0x200B, 0x2010),  # zero width, direction marks
        *range(0x202A, 0x202F),  # direction embeddings and overrides
        *range(0x2060, 0x2070),
        *range(0xFFF9, 0xFFFC),
    ]
)  # fmt: skip
_TAGS: Final = re.compile("[\U000e0000-\U000e007f]+")
_VARIANTS: Final = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
_BITS: Final = re.compile("[\u2062\u2064]{16,}")
"""Text encoded in two invisible operators, eight per character."""
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


def normalise_characters(text: str) -> str:
    """Normalise to plain characters and single spaces. Hidden alphabets are decoded in place."""
    if "\\" in text:
        text = _unescape(_unescape(text))
    if not text.isascii():
        text = _normalise_non_ascii(text)
    text = _SPACE.sub(" ", _SPACED.sub(_join_letters, text))
    return _LINES.sub("\n", text) if "\n" in text else text


def _unescape(text: str) -> str:
    if "\\u" in text or "\\x" in text:
        text = _ESCAPE.sub(lambda one: chr(int(one.group(1) or one.group(2), 16)), text)
    for written, read in _ESCAPED:
        text = text.replace(written, read)
    return text


def _join_letters(found: re.Match[str]) -> str:
    """Join letters that are separated by one sign. More than one sign ends a word."""
    parts = [part.group() for part in _SPACED_LETTER.finditer(found.group())]
    return "".join(part[0] + (" " if len(part) > 2 else "") for part in parts).strip()


def _normalise_non_ascii(text: str) -> str:
    text = _VARIANTS.sub(_from_variants, _TAGS.sub(_from_tags, text))
    if "\u2062" in text or "\u2064" in text:
        text = _BITS.sub(_from_bits, text)
    text = unicodedata.normalize("NFKC", text.translate(_INVISIBLE))
    text = _MARKS.sub("", text)  # NFKC has already composed ordinary accents
    return _WORD.sub(_to_latin, text) if _LOOKALIKES.search(text) else text


def _to_latin(found: re.Match[str]) -> str:
    """Turn a word of mixed alphabets into Latin letters. Other words stay."""
    word = found.group()
    mixed = not word.isascii() and any(sign.isascii() for sign in word)
    return word.translate(_LATIN) if mixed else word


def _from_tags(found: re.Match[str]) -> str:
    plain = "".join(chr(ord(sign) - 0xE0000) for sign in found.group())
    return "".join(sign for sign in plain if " " <= sign <= "~")


def _from_variants(found: re.Match[str]) -> str:
    """Variation selectors encode the bytes from 0 to 255. Single ones belong to emoji."""
    signs = found.group()
    if len(signs) < 4:
        return ""
    numbers = [ord(sign) - 0xFE00 if ord(sign) < 0xFE10 else ord(sign) - 0xE0100 + 16 for sign in signs]
    return f" {bytes(numbers).decode('latin-1')} "


def _from_bits(found: re.Match[str]) -> str:
    bits = "".join("1" if sign == "\u2064" else "0" for sign in found.group())
    return f" {''.join(chr(int(bits[place : place + 8], 2)) for place in range(0, len(bits) - 7, 8))} "


_TAG: Final = re.compile(r"<[!/?a-zA-Z][^<>]{0,2000}>")
_MANY_TAGS: Final = 4
_MARKDOWN_COMMENT: Final = re.compile(r"^\s*\[[^\]\n]{1,60}\]:\s*(?:#|<>)\s*[(\"'](.{8,2000}?)[)\"']\s*$", re.MULTILINE)
_ATTRIBUTE: Final = re.compile(
    r"\b(?:alt|title|aria-label|aria-description|placeholder|content|summary|data-[\w-]{1,40}+|value)"
    r"\s*=\s*(?:\"([^\"]{12,2000})\"|'([^']{12,2000})')",
    re.IGNORECASE,
)
_LINK_TITLE: Final = re.compile(r"\]\([^\s()]{1,500}+\s+[\"']([^\"'\n]{12,1000}+)[\"']\)")
_ENCLOSED: Final = (("<!--", "-->", 4000), ("/*", "*/", 2000), ("![", "](", 2000))
"""Begin and end of hidden text, and how much of it is read."""
_OPENING: Final = re.compile(r"<(\w{1,20})\b([^<>]{1,1000})>")
_CLOSING: Final = re.compile(r"</(\w{1,20})")
_HIDING: Final = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01](?:px|pt|em|%)?\s*[;\"']|"
    r"opacity\s*:\s*0(?:\.0\d*)?\s*[;\"']|color\s*:\s*(?:white|#fff(?:fff)?|transparent)\b|"
    r"(?:left|top|text-indent)\s*:\s*-\d{3,}|\bhidden\b|max-height\s*:\s*0",
    re.IGNORECASE,
)
_LONGEST_ELEMENT: Final = 4000
_RUNNING: Final = re.compile(r"^<(?:script|iframe|object|embed)\b|javascript:|\bon\w{3,20}\s*=", re.IGNORECASE)
_WITHIN_WORDS: Final = re.compile(r"</?(?:b|i|u|em|s|a|font|span|strong|small|wbr|mark)\b", re.IGNORECASE)
_STYLE: Final = re.compile(r"<style\b(?:[^<]++|<(?!/?style\b))*+</style\s*>", re.IGNORECASE)
_MAX_MATCHES: Final = 60
_SHORTEST: Final = 8
_READ_TWICE: Final = 4
_ALWAYS_READ: Final = 4000


def looks_like_markup(text: str) -> bool:
    return text.count("</") >= _MANY_TAGS or text.count("/>") >= _MANY_TAGS


def strip_tags(text: str) -> str:
    """Text of a page without tags, including comments and hidden parts."""
    text = _STYLE.sub(" ", text) if "<style" in text.lower() else text
    return _TAG.sub(_replace_tag, text.replace("<!--", " ").replace("-->", " "))


def _replace_tag(found: re.Match[str]) -> str:
    """Remove a tag unless it can run code. Inline tags may stand within a word."""
    tag = found.group()
    if _RUNNING.search(tag):
        return tag
    return "" if _WITHIN_WORDS.match(tag) else " "


def find_hidden_pieces(text: str) -> list[str]:
    """Hidden texts of more than one word, shortest first, bounded in total because they are scanned as well."""
    found = sorted((piece for piece in _pieces(text) if " " in piece.strip()), key=len)
    left, kept = max(_ALWAYS_READ, len(text) // _READ_TWICE), list[str]()
    for piece in found:
        left -= len(piece)
        if left < 0:
            break
        kept.append(piece)
    return kept


def _pieces(text: str) -> Iterator[str]:
    for begin, end, longest in _ENCLOSED:
        yield from islice(_enclosed(text, begin, end, longest), _MAX_MATCHES)
    if "<" in text and "=" in text:
        yield from (one.group(1) or one.group(2) for one in islice(_ATTRIBUTE.finditer(text), _MAX_MATCHES))
    if "<" in text and "</" in text:
        yield from (_TAG.sub(" ", piece) for piece in islice(_hidden_elements(text), _MAX_MATCHES))
    if "](" in text:
        yield from (one.group(1) for one in islice(_LINK_TITLE.finditer(text), _MAX_MATCHES))
    if "]:" in text:
        yield from (one.group(1) for one in islice(_MARKDOWN_COMMENT.finditer(text), _MAX_MATCHES))


def _enclosed(text: str, begin: str, end: str, longest: int) -> Iterator[str]:
    """Texts between two signs. Runs in linear time, even if signs are not closed."""
    start = text.find(begin)
    while start >= 0:
        start += len(begin)
        stop = text.find(end, start)
        if stop < 0:
            return
        if stop - start >= _SHORTEST:
            yield text[start : min(stop, start + longest)]
        start = text.find(begin, stop)


def _hidden_elements(text: str) -> Iterator[str]:
    """Texts of invisible elements. Runs in linear time."""
    ends: dict[str, list[int]] = {}
    for one in _CLOSING.finditer(text):
        ends.setdefault(one.group(1).lower(), []).append(one.start())
    done = 0
    for one in _OPENING.finditer(text):
        places = ends.get(one.group(1).lower())
        if places is None or one.start() < done or not _HIDING.search(one.group(2)):
            continue
        next_end = bisect_left(places, one.end() + _SHORTEST)
        if next_end < len(places) and places[next_end] <= one.end() + _LONGEST_ELEMENT:
            done = places[next_end]
            yield text[one.end() : done]
