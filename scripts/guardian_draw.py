"""Draws phrases from one seeded source and fills in what they leave open."""

from __future__ import annotations

import random
import re

from guardian_phrases import read_phrases, read_texts

_SLOT = re.compile(r"\{([A-Z]+)\}")
_VALUE = re.compile(r"\{([a-z]+)\}")
_LONGER_WORD = re.compile(r"(?<![\w@/.:-])[^\W\d_]{3,}(?![\w@/:-]|\.\w)")


class Draw:
    """The same seed draws the same."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311  the same attacks each time, nothing secret
        self.phrases, self.texts = read_phrases(), read_texts()

    def pick(self, options: list[str]) -> str:
        return self.chance.choice(options)

    def fill(self, text: str) -> str:
        """Each {NAME} by one of the fillers of that name."""
        fillers = self.phrases.fillers
        return _SLOT.sub(
            lambda slot: self.pick(fillers[slot.group(1)]) if slot.group(1) in fillers else slot.group(), text
        )

    def fill_values(self, text: str) -> str:
        """Each {name} by one of the values of that name."""
        values = self.texts["values"]
        return _VALUE.sub(lambda slot: self.pick(values[slot[1]]) if slot[1] in values else slot[0], text)

    def misspell(self, text: str) -> str:
        """Few or many of the longer words with a letter swapped, left out or doubled, as people type."""
        share = self.chance.uniform(0.15, 0.95)
        return _LONGER_WORD.sub(
            lambda word: self._slip(word.group()) if self.chance.random() < share else word.group(), text
        )

    def _slip(self, word: str) -> str:
        at = self.chance.randrange(0, len(word) - 1)
        return self.chance.choice(
            (
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
                word[:at] + word[at + 1 :],
                word[:at] + word[at] + word[at:],
            )
        )
