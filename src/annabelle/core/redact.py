"""Keeps secrets out of everything that is written down (POL-06, TRC-03)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import cast

MASK = "«redacted»"

# PWD alone is every shell's current folder; DB_PWD is a password.
_SECRET_NAME = re.compile(
    r"(?:(?:^|_)(?:API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|SESSION|API_HASH)|_PWD)$", re.I
)
_SHAPES = re.compile(
    r"""
      sk-(?:ant-|or-|proj-)?[A-Za-z0-9_-]{16,}          # OpenAI, Anthropic, OpenRouter
    | gsk_[A-Za-z0-9]{16,}                              # Groq
    | xox[abprs]-[A-Za-z0-9-]{10,}                      # Slack
    | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,}   # GitHub
    | glpat-[A-Za-z0-9_-]{16,}                          # GitLab
    | AKIA[0-9A-Z]{16}                                  # AWS key id
    | AIza[0-9A-Za-z_-]{30,}                            # Google
    | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}             # JSON web token
    | -----BEGIN[ A-Z]*PRIVATE\ KEY-----[\s\S]*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
    | (?<=://)[^\s:/@]+:[^\s/@]+(?=@)                   # user:password in an URL
    """,
    re.X,
)
_ASSIGNED = re.compile(
    # What stands before may be joined to it by an underscore (MAIL_TOKEN=…), but not be a part of the same word.
    r"(?i)(?<![^\W_])(authorization|x-annabelle-token|api[_-]?key|token|secret|password|passwd)([\"']?\s*[:=]\s*[\"']?)"
    r"(?:(?:bearer|basic|token)\s+)?([^\s\",;&]{6,})"
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
        text = _SHAPES.sub(MASK, text)
        return _ASSIGNED.sub(rf"\1\2{MASK}", text)

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
