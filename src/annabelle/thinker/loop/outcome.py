"""How a run of the loop ended."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.contract import ParkedTurn
from annabelle.core.errors import ErrorBody


@dataclass(frozen=True, slots=True)
class Outcome:
    """The text for the person, or the error that stands in its place."""

    text: str
    limit: str | None = None
    sent_by_tool: bool = False
    error: ErrorBody | None = None
    parked: ParkedTurn | None = None
    """The turn waits for the person, and `text` asks them."""
