"""Pages of long lists, with a token for the next page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from annabelle.core.errors import InvalidArguments

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ResultPage(Generic[T]):
    """Some of the items, and the token of the page after them; None on the last one."""

    items: list[T]
    next_page: str | None


def get_page(items: Sequence[T], token: str | None, size: int, field: str = "page_token") -> ResultPage[T]:
    """The page a token names, or the first page. Raises InvalidArguments for a token we did not make."""
    start = read_token(token, field)
    end = start + size
    return ResultPage(list(items[start:end]), make_token(end) if end < len(items) else None)


def make_token(start: int) -> str:
    """A position as an opaque token, so that callers do not rely on its content."""
    return base64.urlsafe_b64encode(f"from:{start}".encode()).decode().rstrip("=")


def read_token(token: str | None, field: str = "page_token") -> int:
    if not token:
        return 0
    try:
        word, _, start = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode().partition(":")
        if word == "from" and start.isdecimal() and len(start) < 12:
            return int(start)
    except (binascii.Error, ValueError):
        pass
    raise InvalidArguments("The page token is not one this tool gave.", hint="Leave it out to begin.", field=field)
