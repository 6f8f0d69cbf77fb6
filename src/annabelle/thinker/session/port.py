"""What a thinker needs of its sessions, and what they need of a place that keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from annabelle.core.contract import TurnBrief
from annabelle.core.tools import JsonObject
from annabelle.thinker.loop.local_tools import LocalTool
from annabelle.thinker.session.records import Archive, ArchiveReason, Compaction, TurnRecord
from annabelle.thinker.session.state import Session

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

    def sticky(self, turns: int) -> tuple[str, ...]:
        """Tools of the last turns, the newest first (SEL-05)."""
        recent = [tool for turn in reversed(self.turns[-turns:] if turns else ()) for tool in reversed(turn.tools)]
        return tuple(dict.fromkeys(recent))


class Sessions(Protocol):
    """The sessions of one agent, one per thread."""

    async def open(self) -> None:
        """From now on conversations that rest are archived by themselves."""
        ...

    async def load(self, brief: TurnBrief) -> SessionView:
        """What a turn about to begin needs to know; the record of this very turn is not in it."""
        ...

    async def turns(self, thread_id: str) -> list[TurnRecord]:
        """The latest turns of the conversation, oldest first."""
        ...

    async def append(self, thread_id: str, record: TurnRecord) -> None:
        """Add a turn. The same message id again changes nothing, so a replay after a crash is harmless."""
        ...

    def answered(self, thread_id: str) -> None:
        """The answer is out: now is the time to sum up what has grown long. Nobody waits for it."""
        ...

    async def clear(self, thread_id: str) -> None:
        """Archive the conversation and start with an empty history."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Ending:
    """How a conversation ended: the message that was its last, and what it was about."""

    message_id: str
    reason: ArchiveReason
    summary: str


class SessionStore(Protocol):
    """Keeps sessions and what became of them; files by default, tables on PostgreSQL.

    What replaces something is durable before that is dropped (I-21), and whatever is done twice is done once.
    """

    async def session(self, thread_id: str) -> Session: ...

    async def append(self, thread_id: str, record: TurnRecord) -> None: ...

    async def open_turns(self, thread_id: str) -> list[TurnRecord]:
        """Every turn that was not summed up, oldest first."""
        ...

    async def compact(self, thread_id: str, compaction: Compaction) -> bool:
        """Put a summary in the place of the turns up to a message; false when that message is no longer open."""
        ...

    async def archive(self, thread_id: str, ending: Ending) -> Archive | None:
        """Store the conversation whole and start afresh; None when another message has become its last."""
        ...

    async def archives(self, thread_id: str) -> Sequence[Archive]:
        """The conversations before this one, oldest first, without their turns."""
        ...

    async def archived_turns(self, thread_id: str) -> Mapping[str, Sequence[JsonObject]]:
        """The turns of each of them, by the archive's id."""
        ...

    async def threads(self) -> Mapping[str, str]:
        """Every thread with a mark that is another one when its session has changed."""
        ...

    async def close(self) -> None: ...
