"""What turns need of their sessions, what sessions need of a store, and the records every store writes when a
conversation ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from annabelle.core.contract import TokenUsage, TurnBrief
from annabelle.core.tools import JsonObject
from annabelle.thinker.selection.selection import LocalTool
from annabelle.thinker.session.records import (
    Archive,
    ArchiveReason,
    Compaction,
    SessionHeader,
    SessionLines,
    SessionState,
    SessionTurn,
    parse_turn,
)

KEPT_TURNS = 40
"""Turns of a conversation that are held ready; more never fit a prompt."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """A conversation as a turn needs it."""

    turns: Sequence[SessionTurn]
    compaction: str = ""
    """What was said before the oldest of the turns, summed up."""
    summaries: Sequence[str] = ()
    """What earlier conversations of this thread were about, the latest last."""
    local_tools: Sequence[LocalTool] = ()

    def recent_tools(self, turns: int) -> tuple[str, ...]:
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

    async def turns(self, thread_id: str) -> list[SessionTurn]:
        """The latest turns of the conversation, oldest first."""
        ...

    async def append(self, thread_id: str, record: SessionTurn) -> None:
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
class ConversationEnd:
    """How a conversation ended: the message that was its last, and what it was about."""

    message_id: str
    reason: ArchiveReason
    summary: str


class SessionStore(Protocol):
    """Keeps sessions and what became of them; files by default, tables on PostgreSQL.

    What replaces something is durable before that is dropped (I-21), and whatever is done twice is done once.
    """

    async def session(self, thread_id: str) -> SessionState: ...

    async def append(self, thread_id: str, record: SessionTurn) -> None: ...

    async def open_turns(self, thread_id: str) -> list[SessionTurn]:
        """Every turn that was not summed up, oldest first."""
        ...

    async def compact(self, thread_id: str, compaction: Compaction) -> bool:
        """Put a summary in the place of the turns up to a message; false when that message is no longer open."""
        ...

    async def archive(self, thread_id: str, ending: ConversationEnd) -> Archive | None:
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


_REMEMBERED_MESSAGES = 5


def build_archive(thread_id: str, ending: ConversationEnd, whole: Sequence[JsonObject]) -> Archive:
    """The record, with every line of the conversation in it; one turn at least is among them."""
    turns = [turn for turn in map(parse_turn, whole) if turn is not None]
    spent = sum((turn.usage for turn in turns), TokenUsage())
    return Archive(
        thread_id=thread_id,
        user_id=turns[-1].user_id,
        message_id=ending.message_id,
        reason=ending.reason,
        summary=ending.summary,
        # A clock that went back must not make a conversation end before it began.
        started_at=min(turn.at for turn in turns),
        ended_at=max(turn.at for turn in turns),
        message_count=sum(map(_count_messages, turns)),
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        turns=list(whole),
    )


def build_fresh_header(agent_id: str, thread_id: str, lines: SessionLines, older: SessionLines) -> SessionHeader:
    """Names the last messages of the conversation before: a turn that is replayed just now is not written again."""
    latest = [*lines.open][-_REMEMBERED_MESSAGES:]
    summed_up = [*older.open][-1:]
    return SessionHeader(agent_id=agent_id, thread_id=thread_id, archived=tuple(dict.fromkeys((*summed_up, *latest))))


def _count_messages(turn: SessionTurn) -> int:
    """What was asked, and what was answered if anything was."""
    return 2 if turn.assistant else 1
