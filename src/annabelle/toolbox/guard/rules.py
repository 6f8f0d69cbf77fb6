"""What is scanned for whom, and what holds while nobody can look (GRD-03, GRD-05)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from annabelle.core.scans import EVERY_SERVER, Scan, ScanChange

FailMode = Literal["closed", "open"]
Changes = Mapping[str, ScanChange]


@dataclass(frozen=True, slots=True)
class GuardRules:
    """`changes` are in the order in which they are asked: an agent's own before those of the whole install."""

    enabled: bool = True
    fail_mode: FailMode = "closed"
    messages: bool = True
    changes: tuple[Changes, ...] = ()

    def flags(self, server: str, own: Scan) -> Scan:
        """Which directions of this server are scanned; `own` is what its manifest or its entry says."""
        if not self.enabled:
            return Scan(input=False, output=False)
        wanted = [
            found for one in self.changes for found in (one.get(server), one.get(EVERY_SERVER)) if found is not None
        ]
        going = next((one.input for one in wanted if one.input is not None), own.input)
        coming = next((one.output for one in wanted if one.output is not None), own.output)
        return Scan(input=going, output=coming)


RulesFor = Callable[[str | None], GuardRules]
"""The rules for calls of this agent, by the config in force now; None is whoever is no agent."""


@dataclass(frozen=True, slots=True)
class Guarding:
    """How this install is guarded. Switched off, the guardian is not even started."""

    rules: RulesFor
    seconds: float = 15
    enabled: bool = True
