"""What the guardian is told by its environment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GuardianConfig:
    """Who judges, and from which score on content is blocked or labelled."""

    provider: str = "embedded"
    block_score: float = 0.9
    label_score: float = 0.5

    @classmethod
    def from_environment(cls) -> GuardianConfig:
        return cls()
