"""Makes the record of a conversation that ended, and the header of the one that follows."""

from __future__ import annotations

from collections.abc import Sequence

from annabelle.core.contract import Usage
from annabelle.core.tools import JsonObject
from annabelle.thinker.session.port import Ending
from annabelle.thinker.session.records import Archive, Header, TurnRecord, turn_of
from annabelle.thinker.session.state import Lines

_REMEMBERED = 5


def archive_of(thread_id: str, ending: Ending, whole: Sequence[JsonObject]) -> Archive:
    """The record, with every line of the conversation in it; one turn at least is among them."""
    turns = [turn for turn in map(turn_of, whole) if turn is not None]
    spent = sum((turn.usage for turn in turns), Usage())
    return Archive(
        thread_id=thread_id,
        user_id=turns[-1].user_id,
        message_id=ending.message_id,
        reason=ending.reason,
        summary=ending.summary,
        # A clock that went back must not make a conversation end before it began.
        started_at=min(turn.at for turn in turns),
        ended_at=max(turn.at for turn in turns),
        message_count=sum(map(_messages, turns)),
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        turns=list(whole),
    )


def fresh_header(agent_id: str, thread_id: str, lines: Lines, older: Lines) -> Header:
    """Names the last messages of the conversation before: a turn that is replayed just now is not written again."""
    latest = [*lines.open][-_REMEMBERED:]
    summed_up = [*older.open][-1:]
    return Header(agent_id=agent_id, thread_id=thread_id, archived=tuple(dict.fromkeys((*summed_up, *latest))))


def _messages(turn: TurnRecord) -> int:
    """What was asked, and what was answered if anything was."""
    return 2 if turn.assistant else 1
