"""Owners of memory rows. Every query in this package is limited to one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    # Only for types: owners are used before the database is opened.
    from sqlalchemy import ColumnElement, Table

SearchKind = Literal["fact", "conversation"]


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """A user and one of their agents."""

    user_id: str
    agent_id: str

    def row_filter(self, table: Table) -> ColumnElement[bool]:
        """Limits a query to this owner's rows (I-30)."""
        return (table.c.user_id == self.user_id) & (table.c.agent_id == self.agent_id)

    def columns(self) -> dict[str, str]:
        return {"user_id": self.user_id, "agent_id": self.agent_id}
