"""Parts of queries: rows by id and owner, rows as dataclasses, substrings that match the same on both engines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, Table, Text, and_, bindparam, func, type_coerce

from annabelle.store.memory.owner import Owner

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_HIGHEST = 2**63 - 1
_IDS_AT_ONCE = 500

T = TypeVar("T", bound="DataclassInstance")


def load_row(kind: type[T], row: Mapping[str, object] | RowMapping) -> T:
    """A row as a dataclass whose fields are named like its columns."""
    return kind(**{field.name: row[field.name] for field in fields(kind)})


def rows_by_id(table: Table) -> ColumnElement[bool]:
    """Condition for rows with these ids and this owner; pass `row_parameters` to the statement."""
    # concat("") keeps SQLite from using the owner's index, which would read all rows of the owner.
    return and_(
        table.c.id.in_(bindparam("named_ids", expanding=True)),
        table.c.user_id.concat("") == bindparam("named_user"),
        table.c.agent_id.concat("") == bindparam("named_agent"),
    )


def row_parameters(owner: Owner, ids: Collection[int]) -> dict[str, object]:
    """Parameters for `rows_by_id`. Leaves out impossible ids, which neither engine accepts."""
    possible = [number for number in ids if 0 < number <= _HIGHEST]
    return {"named_ids": possible, "named_user": owner.user_id, "named_agent": owner.agent_id}


def read_by_id(
    connection: Connection, query: Select[*tuple[object, ...]], owner: Owner, ids: Iterable[int]
) -> Iterator[RowMapping]:
    """The rows of a query limited with `rows_by_id`, in parts: the number of parameters is limited."""
    wanted = list(dict.fromkeys(ids))
    for start in range(0, len(wanted), _IDS_AT_ONCE):
        part = wanted[start : start + _IDS_AT_ONCE]
        yield from connection.execute(query, row_parameters(owner, part)).mappings()


_PLAIN_RUN = re.compile(r"[\x20-\x7e]+")


def contains_text(text: str | None, part: str | None) -> bool:
    """Whether a text contains this part; None is in every text."""
    return part is None or (text is not None and part.lower() in text.lower())


def may_contain_text(column: ColumnElement[str], part: str) -> ColumnElement[bool] | None:
    """Condition that holds for all rows with this part and few others; None if there is no useful one."""
    longest = max(_PLAIN_RUN.findall(part.lower()), key=len, default=None)
    return None if longest is None else func.lower(type_coerce(column, Text)).contains(longest, autoescape=True)


CONTEXT_WEIGHT = 0.3
"""Weight of a word in a row's context, relative to one in its text."""


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """A word of a query, and how many rows of its kind contain it, of all owners."""

    word: str
    frequency: int
