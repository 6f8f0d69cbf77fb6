"""What the memory holds after all the killing, read from the databases themselves."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

from crash.verdict import Verdict
from support.postgres import connect
from support.timing import seconds

_WAITING = "SELECT count(*) FROM to_remember"
_STORED = "SELECT user_id, agent_id, session_id, message_id, user_message FROM conversations ORDER BY id"


def wait_until_stored(home: Path, database: str | None, timeout: float) -> int:
    """Until the hub has handed everything over; how many turns it has not, when the time is over."""
    deadline = time.monotonic() + seconds(timeout)
    while True:
        ((waiting,),) = _rows(home / "data" / "annabelle.db", database, _WAITING)
        if not waiting or time.monotonic() > deadline:
            return int(waiting)
        time.sleep(0.1)


def judge_memory(
    verdict: Verdict, home: Path, database: str | None, threads: dict[int, str], messages: dict[int, list[dict]]
) -> None:
    """Every delivered turn is one conversation, in its thread's order, under the one owner there is."""
    stored = _rows(home / "data" / "memory.db", database, _STORED)
    if owners := {row[:2] for row in stored} - {("owner", "annabelle")}:
        verdict.bad_memory.append(f"stored under {owners}")
    for conversation, thread in threads.items():
        kept = [(row[3], row[4]) for row in stored if row[2] == thread]
        answered = {reply["replyTo"] for reply in messages[conversation] if reply["source"] == "agent"}
        said = [(one["id"], one["text"]) for one in messages[conversation] if one["id"] in answered]
        if kept != said:
            verdict.bad_memory.append(f"conversation {conversation}: {len(said)} turns delivered, {len(kept)} stored")


def _rows(file: Path, database: str | None, query: str) -> Sequence[tuple]:
    if database is None:
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=seconds(30))) as connection:
            return connection.execute(query).fetchall()
    with connect(database) as connection:
        return connection.execute(query).fetchall()  # type: ignore[arg-type]
