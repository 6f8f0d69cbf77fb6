"""Splits what people say about times into words with a meaning, by the `recurrence.toml` of a language.

The meanings are the same in every language; `en/recurrence.toml` explains them. To add a language is to add a file.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from annabelle.core.text import fold_for_search
from annabelle.language.lexicon import PhraseFile, load_lexicon

_FILLER: Final = "filler"
_DAY_WITHOUT_DATE: Final = re.compile(r"d\S+(?! [no]\d)(?!\S)")
_NUMBERS: Final = (*range(20), *range(20, 100, 10))
_EVERYWHERE: Final = {
    r"c\1:\2": r"(\d{1,2})[:h](\d{2})\b",
    r"c\1:\2\3": r"(\d{1,2})[:.](\d{2})\s?([ap])\.?m\b\.?",
    r"c\1:00\2": r"(\d{1,2})\s?([ap])\.?m\b\.?",
    r"o\1 m\2": r"(\d{1,2})\.(\d{1,2})\.(?!\d)",
    r"o\1 m\2 n\3": r"(\d{1,2})\.(\d{1,2})\.(\d{4})\b",
    r"n\1": r"(\d{1,9})(?!\d)",
    "to": r"[-–]",
    _FILLER: r"[\s,.;!?]+",
    "?": r"[^\W\d]+|\d+|\S",
}
"""What is read in every language. `?` is a word that is not known."""


@dataclass(frozen=True, slots=True)
class TimeWord:
    meaning: str
    text: str
    """As it was said, with a blank before it; empty for another meaning of the same word."""


class TimeWords:
    """The words of one language."""

    def __init__(self, file: PhraseFile, numbers: PhraseFile | None) -> None:
        self.counts_to_twelve = "12" in file.phrases("clock_hours")
        """Whether 5:30 may be in the afternoon."""
        values = numbers.phrases("values") if numbers is not None else ()
        known = [(meaning, file.alternation(f"words.{meaning}")) for meaning in file.names("words")]
        known += [(f"n{number}", words) for number, words in zip(_NUMBERS, values, strict=False)]
        # A word begins after what is no letter: the h of 9h is one.
        bounded = [(meaning, rf"(?<![^\W\d])(?:{_allow_plain(phrase)})(?!\w)") for meaning, phrase in known]
        self._patterns = [(meaning, re.compile(phrase)) for meaning, phrase in (*bounded, *_EVERYWHERE.items())]

    def split(self, text: str) -> list[TimeWord]:
        """The words with their meanings. Of two phrases that begin at the same place the longer is meant."""
        said, position = unicodedata.normalize("NFC", text).lower().replace("’", "'"), 0
        words: list[TimeWord] = []
        while position < len(said):
            found = [(meaning, match) for meaning, one in self._patterns if (match := one.match(said, position))]
            meaning, match = max(found, key=lambda pair: pair[1].end())
            first, *others = match.expand(meaning).split()
            gap = "" if said[position - 1 : position].strip() else " "
            words += [TimeWord(first, gap + match[0]), *(TimeWord(other, "") for other in others)]
            position = match.end()
        return _read_habits([word for word in words if word.meaning != _FILLER])


def _allow_plain(phrase: str) -> str:
    """Accents may be left out, but count where they are: in Polish, one makes "on Sundays" of "on Sunday"."""
    return re.sub(r"[^\x00-\x7f]", lambda sign: f"(?:{sign[0]}|{fold_for_search(sign[0])})", phrase)


def join_meanings(words: Sequence[TimeWord]) -> str:
    return " ".join(word.meaning for word in words)


def _read_habits(words: Sequence[TimeWord]) -> list[TimeWord]:
    """`habit` is `every` before a day of the week without a date, and before a part of the day that comes first."""
    read: list[TimeWord] = []
    for index, word in enumerate(words):
        follows = join_meanings(words[index + 1 :])
        if word.meaning != "habit":
            read.append(word)
        elif _DAY_WITHOUT_DATE.match(follows) or (index == 0 and follows.startswith("p:")):
            read.append(TimeWord("every", word.text))
    return read


@cache
def load_time_words() -> tuple[TimeWords, ...]:
    numbers = {file.path.parent.name: file for file in load_lexicon("numbers").files}
    return tuple(TimeWords(file, numbers.get(file.path.parent.name)) for file in load_lexicon("recurrence").files)
