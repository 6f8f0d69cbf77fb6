"""Whose memory a row is. Every query of this room begins with an owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Table, and_

Kind = Literal["fact", "conversation"]
"""What can be found by search."""


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """A user, and the agent of theirs that remembers."""

    user_id: str
    agent_id: str

    def of(self, table: Table) -> ColumnElement[bool]:
        """The condition that keeps a query within this owner's rows (I-30)."""
        return and_(table.c.user_id == self.user_id, table.c.agent_id == self.agent_id)

    def columns(self) -> dict[str, str]:
        return {"user_id": self.user_id, "agent_id": self.agent_id}
