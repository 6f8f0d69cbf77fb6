"""`/stop`: ends what an agent does in this chat, and what waits there (LOOP-09)."""

from __future__ import annotations

from typing import Final

STOP: Final = "/stop"


def is_stop(text: str) -> bool:
    return text.strip().casefold() == STOP


def answer(stopped: int, taken_back: int = 0) -> str:
    """What the person reads: of what ran or waited for its turn, and of what waited for their yes."""
    if not stopped and not taken_back:
        return "Nothing is running here."
    questions = "1 question was" if taken_back == 1 else f"{taken_back} questions were"
    back = f" {questions} taken back." if taken_back else ""
    return ("Stopped." if stopped <= 1 else f"Stopped, with {stopped - 1} more that waited.") + back
