"""Reads a session of this home as one conversation, whichever agent had it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, cast

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject
from annabelle.thinker.compress.trajectories import Trajectory

_THREAD_ID: Final = re.compile(r"[\w-]{1,120}")


def recorded_session(home: Home, thread_id: str) -> Trajectory | None:
    """All its turns, also those that were summed up since; None when there is no such session. Nothing is written."""
    if _THREAD_ID.fullmatch(thread_id) is None:
        return None
    messages: list[ModelMessage] = []
    for path in sorted(home.agents.glob(f"*/sessions/{thread_id}.jsonl")):
        older = path.parent / "older" / path.name
        messages += [*(_messages(older) if older.is_file() else ()), *_messages(path)]
    return Trajectory(thread_id, messages) if messages else None


def _messages(path: Path) -> list[ModelMessage]:
    """Read only: a thinker may be writing this file, and repairing it is its matter."""
    messages: list[ModelMessage] = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise StorageTrouble(f"The session {path.name} can not be read: {error.strerror}.") from error
    for line in lines:
        try:
            record = cast("JsonObject", json.loads(line))
            if record["type"] == "cleared":
                messages.clear()
            elif record["type"] == "turn":
                messages += ModelMessagesTypeAdapter.validate_python(record["messages"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue  # a torn line, or a turn of another version: the others can still be compared
    return messages
