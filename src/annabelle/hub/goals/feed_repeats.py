"""Tells whether the feed had an item before in other words (AGE-09).

It is the same thing if the texts share most of their words, wherever these stand. It is another thing if a name or a
number differs, or if a word stands in the place of another: a report of the next chapter, another town, less instead
of more. Losing something new is worse than telling something twice, so what is in doubt passes.

Measured with pairs in English, German, French, Italian, Spanish, Polish and Japanese: chosen with 45 of one thing in
other words and 45 of two things for one goal, it finds 12 of the 15 that were kept apart, and takes none of the 15
others for a repeat.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final
from zoneinfo import ZoneInfo

from annabelle.core.text import split_search_words
from annabelle.policy.person_words import find_pages, remove_pages
from annabelle.store.feed import FeedItem, NewFeedItem

COMPARED: Final = 200
"""So many of a person's newest items are compared."""
_LEAST_SHARED: Final = 0.6
_LEAST_SHARED_OF_ONE_PAGE: Final = 0.55
_EXAMINED: Final = 5
"""So many of those that share most are looked at closely, and at the beginning only."""
_MOST_WORDS: Final = 400
_GROUP: Final = 4
_STEM: Final = 4
_LONGEST_SWAP: Final = 3
_SENTENCE_END: Final = re.compile(r"[.!?:;]\s|\n|[.!?]$")
_NAME_OR_NUMBER: Final = re.compile(r"[^\W_]+(?:[.,:][^\W_]+)*")


class FeedRepeats:
    """The items that a person's feed had, to compare new ones with."""

    def __init__(self, earlier: Iterable[FeedItem]) -> None:
        self._earlier = [(one, _read(one)) for one in earlier]

    def find(self, new: NewFeedItem) -> FeedItem | None:
        """The earlier item that says the same; None if there is none."""
        text = _read(new)
        scored = [(_share(text, known), number) for number, (_, known) in enumerate(self._earlier)]
        for _, number in sorted((pair for pair in scored if pair[0]), reverse=True)[:_EXAMINED]:
            item, known = self._earlier[number]
            if not _differ(text, known):
                return item
        return None

    def add(self, item: FeedItem) -> None:
        self._earlier.append((item, _read(item)))


@dataclass(frozen=True, slots=True)
class HandedItem:
    """What became of an item that was handed over. `earlier`: the one that said the same, if it was compared."""

    title: str
    shown: bool
    earlier: FeedItem | None

    def explain_left_out(self, zone: ZoneInfo) -> str:
        if self.earlier is None:
            return f"Left out: “{self.title}”. The feed had it before, in these words."
        day = f"{self.earlier.created_at.astimezone(zone):%Y-%m-%d}"
        return f"Left out: “{self.title}”. The feed had the same on {day}: “{self.earlier.title}”."


@dataclass(frozen=True, slots=True)
class _ItemText:
    """What is compared of an item."""

    words: Sequence[str]
    groups: frozenset[str]
    """Groups of letters within words: an inflected word shares most of them."""
    names: frozenset[str]
    numbers: frozenset[str]
    pages: frozenset[str]


def _read(item: NewFeedItem) -> _ItemText:
    whole = f"{item.title}\n{item.content}"
    text = remove_pages(whole)
    words = split_search_words(text)
    names, numbers = _find_names(text)
    return _ItemText(
        words=words,
        groups=frozenset(f" {one} "[at : at + _GROUP] for one in words for at in range(max(1, len(one) - 1))),
        names=names,
        numbers=numbers,
        pages=frozenset(find_pages(whole)),
    )


def _share(one: _ItemText, other: _ItemText) -> float:
    """How much of their words two texts share; 0 if it is too little to say the same."""
    shared = len(one.groups & other.groups)
    share = shared / max(1, len(one.groups) + len(other.groups) - shared)
    return share if share >= (_LEAST_SHARED_OF_ONE_PAGE if one.pages & other.pages else _LEAST_SHARED) else 0.0


def _differ(one: _ItemText, other: _ItemText) -> bool:
    return (_names_more(one, other) and _names_more(other, one)) or _has_swapped_words(one, other)


def _find_names(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Words with a capital inside a sentence, and words with a digit. A sentence of capitals tells no names."""
    names: list[str] = []
    numbers: list[str] = []
    for sentence in _SENTENCE_END.split(text):
        words = _NAME_OR_NUMBER.findall(sentence)
        numbers += [word for word in words if any(sign.isdigit() for sign in word)]
        capitals = [word for word in words[1:] if word[0].isupper()]
        names += capitals if len(capitals) * 2 <= len(words) else []
    return frozenset(split_search_words(" ".join(names))), frozenset(split_search_words(" ".join(numbers)))


def _names_more(one: _ItemText, other: _ItemText) -> bool:
    """Whether a text has a name or number that the other has nowhere."""
    stems = _list_stems(other.words)
    return not one.numbers <= set(other.words) or any(name[:_STEM] not in stems for name in one.names - one.numbers)


def _has_swapped_words(one: _ItemText, other: _ItemText) -> bool:
    """Whether, where the texts go alike, a word of one stands in the place of a word of the other."""
    stems, other_stems = _list_stems(one.words), _list_stems(other.words)
    matcher = SequenceMatcher(None, one.words[:_MOST_WORDS], other.words[:_MOST_WORDS], autojunk=False)
    for sort, begin, end, other_begin, other_end in matcher.get_opcodes():
        if sort != "replace" or max(end - begin, other_end - other_begin) > _LONGEST_SWAP:
            continue
        own = _has_new_word(one.words[begin:end], other_stems)
        if own and _has_new_word(other.words[other_begin:other_end], stems):
            return True
    return False


def _has_new_word(words: Sequence[str], known_stems: frozenset[str]) -> bool:
    return any(len(one) >= _STEM and one[:_STEM] not in known_stems for one in words)


def _list_stems(words: Sequence[str]) -> frozenset[str]:
    return frozenset(one[:_STEM] for one in words)
