"""Whose memory a row is. Every query of this room begins with an owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    # Only for the types: an owner is named before the database is opened.
    from sqlalchemy import ColumnElement, Table

SearchKind = Literal["fact", "conversation"]
"""What can be found by search."""


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """A user, and the agent of theirs that remembers."""

    user_id: str
    agent_id: str

    def row_filter(self, table: Table) -> ColumnElement[bool]:
        """The condition that keeps a query within this owner's rows (I-30)."""
        return (table.c.user_id == self.user_id) & (table.c.agent_id == self.agent_id)

    def columns(self) -> dict[str, str]:
        return {"user_id": self.user_id, "agent_id": self.agent_id}
