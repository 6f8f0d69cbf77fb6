"""Draws phrases from one seeded source and fills in what they leave open."""

from __future__ import annotations

import random
import re

from guardian_phrases import read_phrases, read_texts

MISSPELT = 0.2
"""Share of texts that have slips."""
_SLOT = re.compile(r"\{([A-Z]+|[a-z]+)\}")
_LONGER_WORD = re.compile(r"(?<![\w@/.:-])[^\W\d_]{3,}(?![\w@/:-]|\.\w)")


class Draw:
    """The same seed draws the same."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311  the same attacks each time, nothing secret
        self.phrases, self.texts = read_phrases(), read_texts()
        self._fillers: dict[str, list[str]] = self.phrases.fillers | self.texts["values"]

    def pick(self, options: list[str]) -> str:
        return self.chance.choice(options)

    def fill(self, text: str) -> str:
        """Each {NAME} by one of the fillers of that name, and each {name} by one of the values."""
        fillers = self._fillers
        return _SLOT.sub(
            lambda slot: self.pick(fillers[slot.group(1)]) if slot.group(1) in fillers else slot.group(), text
        )

    def typed(self, text: str) -> str:
        """Sometimes with slips, in attacks and in ordinary text alike: they say nothing by themselves."""
        return self._misspell(text) if self.chance.random() < MISSPELT else text

    def _misspell(self, text: str) -> str:
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
