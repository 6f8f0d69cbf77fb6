"""What a question looks for: its telling words, its meaning, who is asked about, and when."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from annabelle.servers.memory.search.moments import Date, dates_in
from annabelle.servers.memory.search.stopwords import QUESTION_WORDS, STOP_WORDS
from annabelle.store.memory.folding import words

READ_CHARACTERS = 2_000
"""Of a longer question, the beginning is looked for."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Query:
    """A question, taken apart."""

    words: tuple[str, ...]
    meaning: str
    speakers: frozenset[str] = frozenset()
    dates: tuple[Date, ...] = ()


def parse(text: str, speakers: Collection[str] = ()) -> Query:
    """Take a question apart. `speakers`: names, folded, of those who speak in what is searched.

    A name that is asked about says who spoke. As a word it would lead to the turns in which others address them.
    """
    text = text[:READ_CHARACTERS]
    said = words(text)
    named = frozenset(said).intersection(speakers)
    telling = [word for word in said if word not in STOP_WORDS and word not in named]
    meant = [
        word
        for word in _WORD.findall(text)
        if (folded := words(word)) and not (folded[0] in QUESTION_WORDS or folded[0] in named)
    ]
    return Query(
        words=tuple(telling or [word for word in said if word not in named] or said),
        meaning=" ".join(part for part in meant if part != "s") or text,
        speakers=named,
        dates=dates_in(text),
    )
