"""What a thinker needs of a place that keeps sessions; files by default, tables on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from annabelle.core.contract import TurnBrief
from annabelle.thinker.loop.local_tools import LocalTool
from annabelle.thinker.session.records import TurnRecord

KEPT_TURNS = 40
"""Turns of a conversation that are held ready; more never fit a prompt."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """A conversation as a turn needs it."""

    turns: Sequence[TurnRecord]
    compaction: str = ""
    """What was said before the oldest of the turns, summed up."""
    summaries: Sequence[str] = ()
    """What earlier conversations of this thread were about, the latest last."""
    local_tools: Sequence[LocalTool] = ()

    def sticky(self, turns: int, most: int) -> tuple[str, ...]:
        """Tools of the last turns, the newest first (SEL-05)."""
        recent = [tool for turn in reversed(self.turns[-turns:] if turns else ()) for tool in reversed(turn.tools)]
        return tuple(dict.fromkeys(recent))[:most]


class Sessions(Protocol):
    """The sessions of one agent, one per thread."""

    async def load(self, brief: TurnBrief) -> SessionView:
        """What a turn about to begin needs to know; the record of this very turn is not in it."""
        ...

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
