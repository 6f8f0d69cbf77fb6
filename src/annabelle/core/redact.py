"""Keeps secrets out of everything that is written down (POL-06, TRC-03)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import cast

from annabelle.core.secret_shapes import ANY_SHAPE, ASSIGNED, may_have_shape

MASK = "«redacted»"

# PWD alone is every shell's current folder; DB_PWD is a password.
_SECRET_NAME = re.compile(
    r"(?:(?:^|_)(?:API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|SESSION|API_HASH)|_PWD)$", re.I
)


def is_secret_name(name: str) -> bool:
    """Whether an environment variable or field of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


class Redactor:
    """Masks known secret values, and anything that has the shape of one."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.learn(secrets)

    @classmethod
    def from_environment(cls) -> Redactor:
        return cls(value for name, value in os.environ.items() if is_secret_name(name))

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask these values from now on. Short ones would mask ordinary words, so they are left out."""
        self._values.update(value for value in secrets if len(value) >= 8)
        longest_first = sorted(self._values, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        if self._pattern is not None:
            text = self._pattern.sub(MASK, text)
        if may_have_shape(text):
            text = ANY_SHAPE.sub(MASK, text)
        return ASSIGNED.sub(rf"\1\2{MASK}", text)

    def data(self, value: object) -> object:
        """The same for nested data; fields with a secret's name are masked whole."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            items = cast("dict[object, object]", value).items()
            return {str(key): MASK if item and is_secret_name(str(key)) else self.data(item) for key, item in items}
        if isinstance(value, list | tuple):
            return [self.data(item) for item in cast("list[object]", value)]
        return value
