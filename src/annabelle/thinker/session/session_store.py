"""A conversation as a turn needs it, what sessions need of a store, and the records every store writes when a
conversation ends.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from annabelle.core.contract import TokenUsage
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
from annabelle.thinker.session.summariser import summarise_without_model

KEPT_TURNS = 40
"""Turns of a conversation that are loaded; more never fit a prompt."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """A conversation as a turn needs it."""

    turns: Sequence[SessionTurn]
    compaction: str = ""
    """The summary of what came before the turns."""
    summaries: Sequence[str] = ()
    """What earlier conversations of this thread were about, the latest last."""
    local_tools: Sequence[LocalTool] = ()

    def recent_tools(self, turns: int) -> tuple[str, ...]:
        """Tools of the last turns, the newest first (SEL-05)."""
        recent = [tool for turn in reversed(self.turns[-turns:] if turns else ()) for tool in reversed(turn.tools)]
        return tuple(dict.fromkeys(recent))


@dataclass(frozen=True, slots=True)
class ConversationEnd:
    """How a conversation ended: its last message, the reason and a summary."""

    message_id: str
    reason: ArchiveReason
    summary: str


class SessionStore(Protocol):
    """Stores sessions and archives: in files by default, in tables on PostgreSQL.

    A replacement is durable before the original is dropped (I-21), and every operation is idempotent.
    """

    async def session(self, thread_id: str) -> SessionState: ...

    async def append(self, thread_id: str, record: SessionTurn) -> None: ...

    async def open_turns(self, thread_id: str) -> list[SessionTurn]:
        """Every turn that is not compacted, oldest first."""
        ...

    async def compact(self, thread_id: str, compaction: Compaction) -> bool:
        """Replace the turns up to a message by a summary; False if that message is no longer open."""
        ...

    async def archive(self, thread_id: str, ending: ConversationEnd) -> Archive | None:
        """Store the whole conversation and start a new one; None if it has a newer message."""
        ...

    async def remove_turns(self, thread_id: str, gone: frozenset[str]) -> None:
        """Remove turns by their messages, also from archives. A summary that tells of one goes with it."""
        ...

    async def archives(self, thread_id: str) -> Sequence[Archive]:
        """Earlier conversations, oldest first, without their turns."""
        ...

    async def archived_turns(self, thread_id: str) -> Mapping[str, Sequence[JsonObject]]:
        """The turns of earlier conversations, by archive id."""
        ...

    async def threads(self) -> Mapping[str, str]:
        """Every thread with a version mark of its session."""
        ...

    async def close(self) -> None: ...


_REMEMBERED_MESSAGES = 5


def build_archive(thread_id: str, ending: ConversationEnd, whole: Sequence[JsonObject]) -> Archive:
    """The archive record with every line of the conversation, of which one at least is a turn."""
    turns = [turn for turn in map(parse_turn, whole) if turn is not None]
    spent = sum((turn.usage for turn in turns), TokenUsage())
    return Archive(
        thread_id=thread_id,
        user_id=turns[-1].user_id,
        message_id=ending.message_id,
        reason=ending.reason,
        summary=ending.summary,
        # The clock may have been set back during the conversation.
        started_at=min(turn.at for turn in turns),
        ended_at=max(turn.at for turn in turns),
        message_count=sum(map(count_messages, turns)),
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        turns=list(whole),
    )


def is_turn_of(record: JsonObject, messages: Container[object]) -> bool:
    return record.get("type") == "turn" and record.get("message_id") in messages


def strip_archive(archive: Archive, gone: Container[object]) -> Archive | None:
    """The archive without these turns, summed up again without a model; None if nothing is left."""
    left = [record for record in archive.turns if not is_turn_of(record, gone)]
    if len(left) == len(archive.turns):
        return archive
    turns = [turn for turn in map(parse_turn, left) if turn is not None]
    if not turns:
        return None
    ending = ConversationEnd(archive.message_id, "manual", summarise_without_model(turns, ""))
    made = build_archive(archive.thread_id, ending, left)
    return made.model_copy(update={"reason": archive.reason, "archived_at": archive.archived_at})


def build_fresh_header(agent_id: str, thread_id: str, lines: SessionLines, older: SessionLines) -> SessionHeader:
    """A header that names the last messages of the old conversation, so that a replayed turn is not written again."""
    latest = [*lines.open][-_REMEMBERED_MESSAGES:]
    summed_up = [*older.open][-1:]
    return SessionHeader(agent_id=agent_id, thread_id=thread_id, archived=tuple(dict.fromkeys((*summed_up, *latest))))


def count_messages(turn: SessionTurn) -> int:
    return 2 if turn.assistant else 1
