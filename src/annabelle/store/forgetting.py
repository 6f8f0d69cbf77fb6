"""Takes a text out of the hub's tables: rows stay, what holds the text in them is masked (TRU-09)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TypeVar, cast

import sqlalchemy as sa
from sqlalchemy import Connection

from annabelle.core.tools import JsonObject
from annabelle.store.sweep import Cells, Found, Sweep
from annabelle.store.tables import approvals, events, messages, metadata, to_remember, tool_calls

T = TypeVar("T")

FORGOTTEN = "forgotten"
"""Stands where a hash was: a yes with it fits no call any more."""

_BATCH = 500
_MARKS = ("message_id", "reply_to")
_pieces = (
    sa.select(events.c.seq, events.c.message_id, events.c.step, events.c.attempt, events.c.type, events.c.data)
    .where(events.c.type.in_(("text", "think")))
    .order_by(events.c.message_id, events.c.step, events.c.attempt, events.c.type, events.c.seq)
)


def forget(connection: Connection, sweep: Sweep) -> dict[str, int]:
    """Go through every table: how many rows of each held the text."""
    counts: dict[str, int] = {}
    touched: set[str] = set()
    for table in metadata.sorted_tables:
        marks = [name for name in (*_MARKS, *(("id",) if table is messages else ())) if name in table.c]
        rows = sweep.run(connection, Cells.of(table, marks), sweep.own(table))
        touched |= {str(row[mark]) for row in rows for mark in marks if row[mark] is not None}
        counts[table.name] = len(rows)
    counts["events"] += _broken_up(connection, sweep)
    if sweep.apply:
        _let_go(connection, touched)
    return {name: count for name, count in counts.items() if count}


def _broken_up(connection: Connection, sweep: Sweep) -> int:
    """A model says a sentence in pieces, each an event of its own: they are read together, and emptied together."""
    query = _pieces.where(sweep.own(events))
    rows = (
        cast("Found", dict(row))
        for row in connection.execute(query, execution_options={"yield_per": _BATCH}).mappings()
    )
    emptied: list[int] = []
    for pieces in _sentences(rows):
        if _say(sweep, pieces):
            emptied += [cast("int", row["seq"]) for row in pieces]
    if sweep.apply:
        for some in _batches(emptied):
            connection.execute(sa.update(events).where(events.c.seq.in_(some)).values(data={"text": ""}))
    return len(emptied)


def _sentences(rows: Iterable[Found]) -> Iterator[list[Found]]:
    """The pieces of each attempt of each step; the whole text, which comes last, is a row like any other."""

    def same(row: Found) -> tuple[object, ...]:
        return row["message_id"], row["step"], row["attempt"], row["type"]

    for _same, group in groupby(rows, same):
        pieces = [row for row in group if not cast("JsonObject", row["data"]).get("final")]
        if len(pieces) > 1:
            yield pieces


def _say(sweep: Sweep, pieces: list[Found]) -> bool:
    return sweep.needle.within("".join(str(cast("JsonObject", row["data"]).get("text", "")) for row in pieces))


def _let_go(connection: Connection, touched: set[str]) -> None:
    """What else knows of the messages: a plain hash of arguments, which lets a guess be sure, and the way to memory.

    A turn that goes on needs its hashes: they are how its calls are known again.
    """
    running = sa.select(messages.c.id).where(messages.c.state == "running")
    for some in _batches(sorted(touched)):
        ended = sa.and_(tool_calls.c.message_id.in_(some), tool_calls.c.message_id.not_in(running))
        connection.execute(sa.update(tool_calls).where(ended).values(arguments_hash=FORGOTTEN))
        connection.execute(sa.delete(to_remember).where(to_remember.c.message_id.in_(some)))
        asked = sa.update(approvals).where(approvals.c.message_id.in_(some))
        connection.execute(asked.values(digest=FORGOTTEN))


def _batches(values: list[T]) -> Iterator[list[T]]:
    for start in range(0, len(values), _BATCH):
        yield values[start : start + _BATCH]
