"""What a person does not see of a page or a mail but a model reads: comments, invisible elements, attributes."""

from __future__ import annotations

import re
from typing import Final

_TAG: Final = re.compile(r"<[!/?a-zA-Z][^<>]{0,2000}>")
_MANY_TAGS: Final = 4
_COMMENT: Final = re.compile(r"<!--(.{8,4000}?)-->", re.DOTALL)
_MARKDOWN_COMMENT: Final = re.compile(r"^\s*\[[^\]\n]{1,60}\]:\s*(?:#|<>)\s*[(\"'](.{8,2000}?)[)\"']\s*$", re.MULTILINE)
_CODE_COMMENT: Final = re.compile(r"/\*(.{12,2000}?)\*/", re.DOTALL)
_ATTRIBUTE: Final = re.compile(
    r"\b(?:alt|title|aria-label|aria-description|placeholder|content|summary|data-[\w-]{1,40}|value)"
    r"\s*=\s*(?:\"([^\"]{12,2000})\"|'([^']{12,2000})')",
    re.IGNORECASE,
)
_IMAGE_TEXT: Final = re.compile(r"!\[([^\]\n]{12,2000})\]\(")
_LINK_TITLE: Final = re.compile(r"\]\([^\s)]{1,500}\s+[\"']([^\"'\n]{12,1000})[\"']\)")
_UNSEEN: Final = re.compile(
    r"<(\w{1,20})\b[^<>]{0,500}?(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01](?:px|pt|em|"
    r"%)?\s*[;\"']|"
    r"opacity\s*:\s*0(?:\.0\d*)?\s*[;\"']|color\s*:\s*(?:white|#fff(?:fff)?|transparent)\b|"
    r"(?:left|top|text-indent)\s*:\s*-\d{3,}|\bhidden\b|max-height\s*:\s*0)[^<>]{0,500}>(.{8,4000}?)</\1",
    re.IGNORECASE | re.DOTALL,
)
_RUNNING: Final = re.compile(r"^<(?:script|iframe|object|embed)\b|javascript:|\bon\w{3,20}\s*=", re.IGNORECASE)
_WITHIN_WORDS: Final = re.compile(r"</?(?:b|i|u|em|s|a|font|span|strong|small|wbr|mark)\b", re.IGNORECASE)
_STYLE: Final = re.compile(r"<style\b.{0,20000}?</style\s*>", re.IGNORECASE | re.DOTALL)
_MARKED: Final = (("](", _IMAGE_TEXT), ("](", _LINK_TITLE), ("]:", _MARKDOWN_COMMENT), ("/*", _CODE_COMMENT))
_MOST: Final = 60


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
    """Hidden texts of more than a word; at most a bounded number of each sort."""
    found: list[str] = []
    if "<" in text:
        if "<!--" in text:
            found += [one.group(1) for one in _some(_COMMENT, text)]
        if "=" in text:
            found += [one.group(1) or one.group(2) for one in _some(_ATTRIBUTE, text)]
            found += [_TAG.sub(" ", one.group(2)) for one in _some(_UNSEEN, text)]
    for sign, expression in _MARKED:
        if sign in text:
            found += [one.group(1) for one in _some(expression, text)]
    return [piece for piece in found if " " in piece.strip()]


def _some(expression: re.Pattern[str], text: str) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    for one in expression.finditer(text):
        found.append(one)
        if len(found) == _MOST:
            break
    return found
