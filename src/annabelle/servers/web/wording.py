"""Text from pages as it may be shown: without what is invisible, steers a terminal or hides a word."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from annabelle.core.redact import Redactor

# Controls (tab and line feed stay), directions, zero-width characters, halves of characters, tags.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
_SPACE = re.compile(r"\s+")
_URL_CHARS = 500


def shown_text(text: str) -> str:
    """Text of several lines, such as a page."""
    return _UNSEEN.sub("", text)


def shown_line(text: str, limit: int = 300) -> str:
    """Text as one line of bounded length, such as a title."""
    line = _SPACE.sub(" ", _UNSEEN.sub("", text)).strip()
    return line if len(line) <= limit else f"{line[:limit]}…"


def shown_url(url: str, redact: Redactor) -> str:
    """An address without passwords and tokens in it. What is inlined in one is not worth its length."""
    if url.startswith("data:"):
        return f"{shown_line(url, 40)}"
    parts = urlsplit(url) if "@" in url.partition("?")[0] else None
    if parts is not None and parts.hostname:
        url = url.replace(f"{parts.netloc}", parts.netloc.rpartition("@")[2], 1)
    return redact(shown_line(url, _URL_CHARS))
