"""Sessions as people read them: without what the model was sent in between (THR-03)."""

from __future__ import annotations

from collections.abc import Sequence

from annabelle.core.contract import CURRENT_HISTORY, HistoryTurn, SessionHistory, TokenUsage
from annabelle.core.tools import JsonObject
from annabelle.thinker.session.records import Archive, Compaction, SessionTurn, parse_turn
from annabelle.thinker.session.session_store import count_messages


def view_archive(archive: Archive, records: Sequence[JsonObject] = ()) -> SessionHistory:
    """An ended conversation, with the turns of these records."""
    return SessionHistory(
        id=archive.message_id,
        summary=archive.summary,
        reason=archive.reason,
        message_count=archive.message_count,
        input_tokens=archive.input_tokens,
        output_tokens=archive.output_tokens,
        started_at=archive.started_at,
        ended_at=archive.ended_at,
        turns=tuple(_view_turn(turn) for turn in map(parse_turn, records) if turn is not None),
    )


def view_current(turns: Sequence[SessionTurn], compaction: Compaction | None) -> SessionHistory:
    """What is in mind now: the turns, and the summary of those before them."""
    spent = sum((turn.usage for turn in turns), TokenUsage())
    return SessionHistory(
        id=CURRENT_HISTORY,
        summary="" if compaction is None else compaction.summary,
        message_count=sum(map(count_messages, turns)),
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        started_at=min((turn.at for turn in turns), default=None),
        turns=tuple(map(_view_turn, turns)),
    )


def _view_turn(turn: SessionTurn) -> HistoryTurn:
    return HistoryTurn(
        message_id=turn.message_id,
        at=turn.at,
        user=turn.user,
        assistant=turn.assistant,
        tools=turn.tools,
        error=turn.error,
    )
