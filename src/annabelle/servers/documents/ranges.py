"""Reads what people write for parts of a document: pages `1-3,7`, cells `A1:D20`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from annabelle.core.errors import InvalidArguments

_PAGES = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
_CELLS = re.compile(r"([A-Z]{1,3})?([0-9]{1,7})?(?::([A-Z]{1,3})?([0-9]{1,7})?)?", re.IGNORECASE)
_MAX_PAGES = 2000


@dataclass(frozen=True, slots=True)
class Cells:
    """A block of cells, counted from one; None where it is open."""

    first_row: int = 1
    last_row: int | None = None
    first_column: int = 1
    last_column: int | None = None


def page_numbers(text: str | None) -> tuple[int, ...]:
    """Page numbers in the order they are asked for; none means all."""
    if text is None or not text.strip():
        return ()
    found: dict[int, None] = {}
    for word in text.replace(" ", "").split(","):
        match = _PAGES.fullmatch(word)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last or last - first > _MAX_PAGES:
            raise InvalidArguments(f"{text[:80]!r} names no pages.", hint="Write them like 1-3,7.", field="pages")
        found |= dict.fromkeys(range(first, last + 1))
    if len(found) > _MAX_PAGES:
        raise InvalidArguments(f"At most {_MAX_PAGES} pages are read at once.", field="pages")
    return tuple(found)


def cells(text: str | None) -> Cells:
    """The block a range names: `B2:D10`, `A:C` (whole columns), `5:9` (whole rows) or one cell."""
    if text is None or not text.strip():
        return Cells()
    match = _CELLS.fullmatch(text.strip().replace("$", ""))
    if match is None or not any(match.groups()):
        raise InvalidArguments(f"{text[:80]!r} names no cells.", hint="Write them like A1:D20.", field="range")
    column, row, last_column, last_row = match.groups()
    single = ":" not in text
    block = Cells(
        first_row=int(row or 1),
        last_row=int(row) if single and row else int(last_row) if last_row else None,
        first_column=column_number(column) if column else 1,
        last_column=column_number(column) if single and column else column_number(last_column) if last_column else None,
    )
    upside_down = block.last_row is not None and block.last_row < block.first_row
    if block.first_row < 1 or upside_down or (block.last_column or block.first_column) < block.first_column:
        raise InvalidArguments(f"{text[:80]!r} ends before it begins.", field="range")
    return block


def column_number(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + ord(letter) - 64
    return number


def column_letters(number: int) -> str:
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
