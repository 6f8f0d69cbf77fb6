"""Draws phrases from one seeded source and fills in what they leave open."""

from __future__ import annotations

import random
import re

from guardian_phrases import read_phrases

_SLOT = re.compile(r"\{([A-Z]+)\}")


class Draw:
    """The same seed draws the same."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311  the same attacks each time, nothing secret
        self.phrases = read_phrases()

    def pick(self, options: list[str]) -> str:
        return self.chance.choice(options)

    def fill(self, text: str) -> str:
        """Each {NAME} by one of the fillers of that name."""
        fillers = self.phrases.fillers
        return _SLOT.sub(
            lambda slot: self.pick(fillers[slot.group(1)]) if slot.group(1) in fillers else slot.group(), text
        )
