"""`/stop`: ends what an agent does in this chat, and what waits there (LOOP-09)."""

from __future__ import annotations

from typing import Final

STOP: Final = "/stop"


def is_stop(text: str) -> bool:
    return text.strip().casefold() == STOP


def answer(stopped: int) -> str:
    """What the person reads."""
    if not stopped:
        return "Nothing is running here."
    return "Stopped." if stopped == 1 else f"Stopped, with {stopped - 1} more that waited."
