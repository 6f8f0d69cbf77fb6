"""What a person does not see of a page or a mail but a model reads: comments, invisible elements, attributes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import Final

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
"""Where hidden text begins and ends, and how much of it is read."""
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
_MOST: Final = 60
_SHORTEST: Final = 8
_READ_TWICE: Final = 4
_ALWAYS_READ: Final = 4000


def looks_like_markup(text: str) -> bool:
    return text.count("</") >= _MANY_TAGS or text.count("/>") >= _MANY_TAGS


def without_tags(text: str) -> str:
    """The text of a page as it is shown, comments and hidden parts included."""
    text = _STYLE.sub(" ", text) if "<style" in text.lower() else text
    return _TAG.sub(_shown, text.replace("<!--", " ").replace("-->", " "))


def _shown(found: re.Match[str]) -> str:
    """Nothing of a tag, unless it can run something. One that only changes the looks may stand within a word."""
    tag = found.group()
    if _RUNNING.search(tag):
        return tag
    return "" if _WITHIN_WORDS.match(tag) else " "


def unseen_pieces(text: str) -> list[str]:
    """Hidden texts of more than a word; at most a bounded number of each sort.

    All of it is read a second time, so together they are no more than a part of the text: the shortest come first.
    """
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
        yield from islice(_enclosed(text, begin, end, longest), _MOST)
    if "<" in text and "=" in text:
        yield from (one.group(1) or one.group(2) for one in islice(_ATTRIBUTE.finditer(text), _MOST))
    if "<" in text and "</" in text:
        yield from (_TAG.sub(" ", piece) for piece in islice(_hidden_elements(text), _MOST))
    if "](" in text:
        yield from (one.group(1) for one in islice(_LINK_TITLE.finditer(text), _MOST))
    if "]:" in text:
        yield from (one.group(1) for one in islice(_MARKDOWN_COMMENT.finditer(text), _MOST))


def _enclosed(text: str, begin: str, end: str, longest: int) -> Iterator[str]:
    """What stands between two signs. Each character is looked at once, whatever is left open."""
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
    """What stands in elements that are not shown. The ends are looked up in a list made once."""
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
