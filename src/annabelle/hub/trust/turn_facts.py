"""Loads what is known of a turn, in the words of policy."""

from __future__ import annotations

from typing import cast, get_args

from sqlalchemy import Connection

from annabelle.core.tools import JsonObject
from annabelle.core.trust import Label, Source
from annabelle.policy.facts import TurnFacts
from annabelle.policy.seen import Seen, SeenResult
from annabelle.store import recent_turns
from annabelle.store.recent_turns import KeptResult

_WARNINGS = frozenset({"suspicious", "unscanned"})


def turn_facts(
    conn: Connection, message_id: str, own: frozenset[str], people: tuple[SeenResult, ...] = ()
) -> TurnFacts:
    """What the person said, and what the agent has seen in the whole thread; `people` are those known anyway."""
    record = recent_turns.record(conn, message_id)
    return TurnFacts(
        words=record.words,
        earlier=record.earlier,
        origins=record.untrusted,
        suspicious=bool(record.warnings & _WARNINGS),
        pried="pried" in record.warnings,
        seen=Seen((*map(_seen, record.results), *people)),
        own=own,
    )


def _seen(kept: KeptResult) -> SeenResult:
    source, structured = kept.result.get("source"), kept.result.get("structured")
    return SeenResult(
        tool=kept.tool,
        source=cast("Source", source) if source in get_args(Source) else None,
        trusted=kept.trusted,
        private="private" in kept.labels,
        labels=tuple(cast("Label", label) for label in kept.labels if label in get_args(Label)),
        text=str(kept.result.get("text") or ""),
        structured=cast("JsonObject", structured) if isinstance(structured, dict) else None,
        this_turn=kept.this_turn,
        failed=kept.result.get("is_error") is True,
        cut=kept.cut,
    )
