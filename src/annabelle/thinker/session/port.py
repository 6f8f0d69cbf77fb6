"""What a thinker needs of a place that keeps sessions; files by default, tables on PostgreSQL."""

from __future__ import annotations

from typing import Protocol

from annabelle.thinker.session.records import TurnRecord

KEPT_TURNS = 40
"""Turns of a conversation that are held ready; more never fit a prompt."""


class Sessions(Protocol):
    """The sessions of one agent, one per thread."""

    async def turns(self, thread_id: str) -> list[TurnRecord]:
        """The latest turns since the last clear, oldest first."""
        ...

    async def append(self, thread_id: str, record: TurnRecord) -> None:
        """Add a turn. The same message id again changes nothing, so a replay after a crash is harmless."""
        ...

    async def clear(self, thread_id: str) -> None:
        """Start with an empty history; nothing is deleted."""
        ...

    async def close(self) -> None: ...
