"""Known secrets in every form they may come in, found quickly and masked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

from annabelle.core.secret_forms import forms

MASK: Final = "«redacted»"


class Forms:
    """All forms of some secrets. To see that a text has none of them takes a moment only, and most have none."""

    def __init__(self, values: Iterable[str]) -> None:
        found = {form for value in values for text in (value, value.lower(), value.upper()) for form in forms(text)}
        self._longest_first = sorted(found, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._longest_first)))

    def within(self, value: object) -> bool:
        """Whether one of them stands anywhere in a text or in nested data, names of fields included."""
        return bool(self._longest_first) and any(map(self._in, texts_in(value)))

    def masked(self, text: str) -> str:
        return self._pattern.sub(MASK, text) if self._in(text) else text

    def masked_data(self, value: object) -> object:
        """Nested data with masks in it; the same object if it holds no secret, a mask alone if it is too deep."""
        if not self.within(value):
            return value
        try:
            return each_text(value, self.masked)
        except RecursionError:
            return MASK

    def masked_object(self, value: dict[str, object]) -> dict[str, object]:
        masked = self.masked_data(value)
        return cast("dict[str, object]", masked) if isinstance(masked, dict) else {}

    def begun(self, text: str) -> int:
        """How many signs at the end of a text may be the beginning of a secret that goes on in the next piece."""
        most = 0
        for form in self._longest_first:
            at = text.find(form[0], max(0, len(text) - len(form) + 1))
            while at >= 0 and len(text) - at > most:
                if form.startswith(text[at:]):
                    most = len(text) - at
                at = text.find(form[0], at + 1)
        return most

    def _in(self, text: str) -> bool:
        return any(form in text for form in self._longest_first)


def texts_in(value: object) -> Iterator[str]:
    """Every text in nested data, names of fields included."""
    waiting = [value]
    while waiting:  # not by recursion: what others send may be nested as deep as they like
        node = waiting.pop()
        if isinstance(node, str):
            yield node
        elif isinstance(node, dict):
            entries = cast("dict[str, object]", node)
            waiting += entries.keys()
            waiting += entries.values()
        elif isinstance(node, list | tuple):
            waiting += cast("Iterable[object]", node)


def each_text(node: object, change: Callable[[str], str]) -> object:
    """A copy with every text changed, keys included."""
    if isinstance(node, str):
        return change(node)
    if isinstance(node, dict):
        entries = cast("dict[str, object]", node)
        return {change(key): each_text(value, change) for key, value in entries.items()}
    if isinstance(node, list | tuple):
        return [each_text(item, change) for item in cast("Iterable[object]", node)]
    return node
