"""What a crash run does: which turns are sent, and which kills are dealt, in an order decided by a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Target = Literal["hub", "thinker", "server", "forkserver"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message with two tool calls: one that may be repeated and one that must not be."""

    number: int
    conversation: int

    @property
    def key(self) -> str:
        return f"c{self.conversation}-t{self.number}"

    @property
    def say(self) -> str:
        return f"done {self.key}"

    @property
    def text(self) -> str:
        calls = [
            {"name": "witness_touch", "arguments": {"key": self.key}},
            {"name": "witness_mark", "arguments": {"key": self.key}},
        ]
        if self.number % 2:  # a named place is reached by the first call, so each of them is the first at times
            calls.reverse()
        return json.dumps({"calls": calls, "say": self.say})


@dataclass(frozen=True, slots=True)
class Kill:
    """One death: at a named failpoint, or of a process picked at random while work is in flight."""

    target: Target
    failpoint: str | None = None

    def __str__(self) -> str:
        return self.failpoint or f"random {self.target}"


def turns(count: int, conversations: int) -> list[Turn]:
    return [Turn(number, number % conversations) for number in range(count)]


def kills(
    failpoints: Sequence[str], per_failpoint: int, at_random: int, seed: int, targets: Sequence[Target]
) -> list[Kill]:
    """Every failpoint as often as asked and the random ones, shuffled."""
    chance = random.Random(seed)
    dealt = [Kill(target_of(name), name) for name in failpoints for _ in range(per_failpoint)]
    dealt += [Kill(targets[index % len(targets)]) for index in range(at_random)]
    chance.shuffle(dealt)
    return dealt


def target_of(failpoint: str) -> Target:
    process = failpoint.split(".")[0]
    return {"hub": "hub", "toolbox": "hub", "thinker": "thinker", "server": "server"}[process]  # type: ignore[return-value]
