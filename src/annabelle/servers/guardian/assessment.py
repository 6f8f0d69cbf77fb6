"""What a scanner thinks of a text, before it is turned into an answer."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.trust import ThreatType


@dataclass(frozen=True, slots=True)
class Finding:
    """A suspicious piece: what it is, how sure, where it stands in the document, and how it was read."""

    kind: ThreatType
    score: float
    position: int
    reading: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """How much a text looks like an attack (0 to 1), and why."""

    score: float
    findings: tuple[Finding, ...] = ()
    unscanned: str | None = None
    final: bool = True
    """False where a judge who should have been asked did not answer: ask again next time."""
