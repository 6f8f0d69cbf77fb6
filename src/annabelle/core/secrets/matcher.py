"""Finds and masks known secrets in every encoding, in text and nested data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

from annabelle.core.secrets.encodings import encodings_of

MASK: Final = "«redacted»"


class SecretMatcher:
    """Matches some secrets in all their encodings. Fast for text without secrets, which is most text."""

    def __init__(self, values: Iterable[str]) -> None:
        found = {
            form for value in values for text in (value, value.lower(), value.upper()) for form in encodings_of(text)
        }
        self._longest_first = sorted(found, key=len, reverse=True)
        self._pattern: re.Pattern[str] | None = None  # compiling takes long, and most matchers never find anything

    def found_in(self, value: object) -> bool:
        """Whether text or nested data contains a secret, field names included."""
        return bool(self._longest_first) and any(map(self._found_in_text, iterate_texts(value)))

    def mask(self, text: str) -> str:
        if not self._found_in_text(text):
            return text
        self._pattern = self._pattern or re.compile("|".join(map(re.escape, self._longest_first)))
        return self._pattern.sub(MASK, text)

    def mask_data(self, value: object) -> object:
        """Masks nested data. Returns the same object if it has no secret, and only a mask if it is nested too deep."""
        if not self.found_in(value):
            return value
        try:
            return map_texts(value, self.mask)
        except RecursionError:
            return MASK

    def mask_object(self, value: dict[str, object]) -> dict[str, object]:
        masked = self.mask_data(value)
        return cast("dict[str, object]", masked) if isinstance(masked, dict) else {}

    def partial_match_length(self, text: str) -> int:
        """Length of the end of a text that may be the beginning of a secret continued in the next piece."""
        most = 0
        for form in self._longest_first:
            at = text.find(form[0], max(0, len(text) - len(form) + 1))
            while at >= 0 and len(text) - at > most:
                if form.startswith(text[at:]):
                    most = len(text) - at
                at = text.find(form[0], at + 1)
        return most

    def _found_in_text(self, text: str) -> bool:
        return any(form in text for form in self._longest_first)


def iterate_texts(value: object) -> Iterator[str]:
    """Yields every text in nested data, field names included."""
    waiting = [value]
    while waiting:  # no recursion: input may be nested arbitrarily deep
        node = waiting.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict):
            entries = cast("dict[str, object]", node)
            waiting += entries.keys()
            waiting += entries.values()
        elif isinstance(node, list | tuple):
            waiting += cast("Iterable[object]", node)


def map_texts(node: object, change: Callable[[str], str]) -> object:
    """Copies nested data with every text changed, keys included."""
    if isinstance(node, str):
        return change(node)
    if isinstance(node, dict):
        entries = cast("dict[str, object]", node)
        return {change(key): map_texts(value, change) for key, value in entries.items()}
    if isinstance(node, list | tuple):
        return [map_texts(item, change) for item in cast("Iterable[object]", node)]
    return node
