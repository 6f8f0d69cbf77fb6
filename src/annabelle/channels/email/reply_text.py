"""What a person has written in a mail, without what they quote and without their signature.

Words of others must not pass for the person's own, so everything below the mark of a quotation is left out.
"""

from __future__ import annotations

import re
from typing import Final

_SEPARATOR: Final = re.compile(r"-{2,}.*-{2,}|_{10,}")
"""Between an answer and the mail below it, as `-----Original Message-----`."""
_HEADER_LINE: Final = re.compile(r"\*?[^\s:>][^:]{0,30}:\*? \S.*")
_HEADER_LINES: Final = 3
_BLOCKQUOTE: Final = re.compile(r"<blockquote\b.*</blockquote>", re.DOTALL | re.IGNORECASE)


def cut_quotes(text: str) -> str:
    """Works by form, not by words, since "… wrote:" is said in every language."""
    lines = text.replace("\r\n", "\n").splitlines()
    kept: list[str] = []
    for number, line in enumerate(lines):
        if line.rstrip() == "--" or _SEPARATOR.fullmatch(line.strip()) or _begins_header(lines[number:]):
            break
        if line.startswith(">"):
            _drop_introduction(kept)
        else:
            kept.append(line)
    return "\n".join(kept).strip()


def cut_html_quotes(html: str) -> str:
    return _BLOCKQUOTE.sub("", html)


def _begins_header(lines: list[str]) -> bool:
    """Whether the head of another mail stands here: From, Sent, To in whatever language, one with an address."""
    head = [line.strip() for line in lines[:_HEADER_LINES]]
    named = len(head) == _HEADER_LINES and all(_HEADER_LINE.fullmatch(line) for line in head)
    return named and any("@" in line for line in head)


def _drop_introduction(kept: list[str]) -> None:
    """Take back "On Monday Ada wrote:", which may fill two lines."""
    while kept and not kept[-1].strip():
        kept.pop()
    if kept and kept[-1].rstrip().endswith(":"):
        last = kept.pop()
        if kept and kept[-1].strip() and ("@" in kept[-1] or last.startswith("<")):
            kept.pop()
