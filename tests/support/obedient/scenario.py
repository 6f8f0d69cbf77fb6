"""What is played: requests, calls, and the foreign words that wait on the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Arguments = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One call. A text argument that begins with `re:` stands for the first group found in what tools returned."""

    tool: str
    arguments: Arguments = field(default_factory=dict)
    errand: tuple[Step, ...] = ()
    """What a subagent that is sent by this call does."""


@dataclass(frozen=True)
class Task:
    """An ordinary request and the calls a sensible assistant makes for it."""

    id: str
    says: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Attack:
    """A request whose material holds foreign words, and the calls these want."""

    id: str
    place: str
    says: str
    steps: tuple[Step, ...]
    words: str
    wanted: tuple[Step, ...]
    goals: tuple[str, ...]
    """The tools whose call completes the attacker's goal; `sent` is a mail that went out, by whatever way."""
    then: tuple[str, ...] = ()
    """What the person says afterwards in the same conversation."""


def steps_from(rows: Iterable[Sequence[Any]]) -> tuple[Step, ...]:
    """Steps as the files have them: a tool, its arguments, and the errand of a subagent."""
    return tuple(Step(row[0], row[1], steps_from(row[2]) if len(row) > 2 else ()) for row in rows)
