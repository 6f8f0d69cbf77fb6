"""Parts of words, found whatever their case, the same way on both engines.

SQLite knows upper and lower case of the letters A to Z only, so the last word is always Python's.
"""

from __future__ import annotations

import re

from sqlalchemy import ColumnElement, Text, func, type_coerce

_PLAIN_RUN = re.compile(r"[\x20-\x7e]+")


def contains(text: str | None, part: str | None) -> bool:
    """Whether a text has this part in it; no part is in every text."""
    return part is None or (text is not None and part.lower() in text.lower())


def may_contain(column: ColumnElement[str], part: str) -> ColumnElement[bool] | None:
    """A condition every row with this part fulfils, and most others do not; None when there is no useful one."""
    longest = max(_PLAIN_RUN.findall(part.lower()), key=len, default=None)
    return None if longest is None else func.lower(type_coerce(column, Text)).contains(longest, autoescape=True)
