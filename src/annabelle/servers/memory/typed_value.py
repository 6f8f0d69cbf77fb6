"""The amount, date or time a sentence ends in: what changes when the rest of it stays the same."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TypedValue:
    """A value, and the sentence without it."""

    rest: str
    value: str


# Only states: "ran a marathon in 2019" stays true when there is another one in 2021.
_STATE = re.compile(r"\b(?:is|are|costs?|takes|starts?|begins?|ends?|weighs?|earns?|pays?|due|wakes|measures|lasts?)\b")
_TYPED = re.compile(
    r"(?<![\w.])(?:[$€£]\s?)?\d[\d.,:]*(?:%|\s?(?:am|pm)\b)?(?:(?:st|nd|rd|th)\b)?(?!\w)"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b"
)
_WORDS_AFTER = 3


def typed_value(words: str) -> TypedValue | None:
    """The last such value, when it stands near the end and after a verb of state."""
    state = _STATE.search(words)
    found = [match for match in _TYPED.finditer(words) if state is not None and match.start() >= state.end()]
    if not found:
        return None
    # "on 3 May at 9:30" is one value as well: everything typed after the verb changes together.
    first, last = found[0], found[-1]
    rest = words[last.end() :]
    if len(rest.split()) > _WORDS_AFTER or len(words[: first.start()].split()) < 2:
        return None
    shape = _TYPED.sub("#", words[first.start() : last.end()])
    return TypedValue(f"{words[: first.start()]}{shape}{rest}".strip(), words[first.start() : last.end()])
