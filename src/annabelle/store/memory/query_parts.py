"""Parts of queries: rows by id and owner, substrings that match the same on both engines, and search terms. Use
`select(facts).where(named(facts))` with `naming(owner, ids)`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Table, Text, and_, bindparam, func, type_coerce

from annabelle.store.memory.owner import Owner

_HIGHEST = 2**63 - 1


def rows_by_id(table: Table) -> ColumnElement[bool]:
    """Those of the ids that are the owner's."""
    # Without the empty text SQLite reads all rows of the owner by their index, and then looks for the ids among them.
    return and_(
        table.c.id.in_(bindparam("named_ids", expanding=True)),
        table.c.user_id.concat("") == bindparam("named_user"),
        table.c.agent_id.concat("") == bindparam("named_agent"),
    )


def row_parameters(owner: Owner, ids: Collection[int]) -> dict[str, object]:
    """What such a statement is given. A number no row can have is left out: neither engine would take it."""
    possible = [number for number in ids if 0 < number <= _HIGHEST]
    return {"named_ids": possible, "named_user": owner.user_id, "named_agent": owner.agent_id}


_PLAIN_RUN = re.compile(r"[\x20-\x7e]+")


def contains_text(text: str | None, part: str | None) -> bool:
    """Whether a text has this part in it; no part is in every text."""
    return part is None or (text is not None and part.lower() in text.lower())


def may_contain_text(column: ColumnElement[str], part: str) -> ColumnElement[bool] | None:
    """A condition every row with this part fulfils, and most others do not; None when there is no useful one."""
    longest = max(_PLAIN_RUN.findall(part.lower()), key=len, default=None)
    return None if longest is None else func.lower(type_coerce(column, Text)).contains(longest, autoescape=True)


CONTEXT_WEIGHT = 0.3
"""What a word in the surroundings of a row counts beside one in its text."""


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """A word of a query, and in how many rows of its kind it stands, whoever owns them."""

    word: str
    frequency: int
