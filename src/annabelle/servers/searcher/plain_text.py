"""Cleans text from the web: no markup, no invisible characters, bounded length."""

from __future__ import annotations

import html
import re
import unicodedata

_TAGS = re.compile(r"</?[A-Za-z][^<>]{0,500}>")
_UNSEEN = ("Cc", "Cf", "Co", "Cs", "Cn")
_JOINERS = "\u200c\u200d"
"""Invisible too, but some scripts and emoji are spelled with them."""


def one_line(text: object, limit: int) -> str:
    """A line of text without markup and invisible characters, at most `limit` characters long."""
    if not isinstance(text, str):
        return ""
    line = visible_words(html.unescape(_TAGS.sub("", text[: limit * 20])))
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def visible_words(text: str) -> str:
    """The visible characters of a text, on one line; `<` and `&` are not interpreted."""
    return " ".join(
        "".join(char if char in _JOINERS or unicodedata.category(char) not in _UNSEEN else " " for char in text).split()
    )


def remove_invisible(text: str) -> str:
    """The text without control, direction and private characters; line breaks stay."""
    kept = "\n\t" + _JOINERS
    table = {ord(char): None for char in set(text) if char not in kept and unicodedata.category(char) in _UNSEEN}
    return text.translate(table) if table else text


def parse_web_address(value: object) -> str | None:
    """A valid http or https address, or None."""
    if not isinstance(value, str) or len(value) > 2000:
        return None
    address = value.strip()
    if not address.lower().startswith(("http://", "https://")):
        return None
    return address if address.isprintable() and " " not in address else None
