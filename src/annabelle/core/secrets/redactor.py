"""Masks secrets in everything written to disk or logged (POL-06, TRC-03)."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast
from urllib.parse import unquote, urlsplit

from annabelle.core.secrets.matcher import MASK, SecretMatcher
from annabelle.core.secrets.patterns import ANY_SECRET, ASSIGNED_SECRET, may_contain_secret

__all__ = ["MASK", "Redactor", "SecretMatcher", "environment_secrets", "is_secret_name", "passwords_in_url"]

_LEAST = 8
_LONG = 16

# PWD alone is the shell's current folder, DB_PWD a password; DESKTOP_SESSION is a desktop's name.
_SECRET_NAME = re.compile(
    r"(?<!^DESKTOP)(?:(?:^|_)(?:API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|SESSION|API_HASH)|_PWD)$", re.I
)


def is_secret_name(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def environment_secrets(environment: Mapping[str, str]) -> Iterator[str]:
    """Yields values of variables with a secret's name, and passwords in URLs."""
    for name, value in environment.items():
        if is_secret_name(name):
            yield value
        yield from passwords_in_url(value)


def passwords_in_url(address: str) -> Iterator[str]:
    """Yields the password of a URL (`scheme://user:password@host`), both quoted and unquoted."""
    if "://" not in address or "@" not in address:
        return
    with contextlib.suppress(ValueError):
        password = urlsplit(address).password or ""
        yield from (password, unquote(password))


class Redactor:
    """Masks known secrets in every encoding, and known patterns. One per process; `learn` adds secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._unsaid: set[str] = set()
        self._all_secrets, self._distinctive_secrets = SecretMatcher(()), SecretMatcher(())
        self.learn(secrets)

    @classmethod
    def from_environment(cls) -> Redactor:
        return cls(environment_secrets(os.environ))

    def learn(self, secrets: Iterable[str], *, spoken: bool = True) -> None:
        """Masks these values from now on. Skips short ones, which would mask ordinary words.

        With `spoken=False` they are masked only in logs and files, not in what people, models and tools exchange: a
        path or URL may contain a secret, or be the subject of the conversation.
        """
        known = self._values if spoken else self._unsaid
        new = {value for value in secrets if len(value) >= _LEAST} - known
        if new:
            known |= new
            self._all_secrets = SecretMatcher(self._values | self._unsaid)
            self._distinctive_secrets = SecretMatcher(filter(_is_distinctive, self._values))

    def __call__(self, text: str) -> str:
        text = self._all_secrets.mask(text)
        if may_contain_secret(text):
            text = ANY_SECRET.sub(MASK, text)
        return ASSIGNED_SECRET.sub(rf"\1\2{MASK}", text)

    def redact_data(self, value: object) -> object:
        """Like calling it, for nested data; fields with a secret's name are masked completely."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            items = cast("dict[object, object]", value).items()
            return {
                self._all_secrets.mask(str(key)): MASK if item and is_secret_name(str(key)) else self.redact_data(item)
                for key, item in items
            }
        if isinstance(value, list | tuple):
            return [self.redact_data(item) for item in cast("list[object]", value)]
        return value

    @property
    def written(self) -> SecretMatcher:
        """All values masked in logs, traces and errors."""
        return self._all_secrets

    @property
    def distinctive_secrets(self) -> SecretMatcher:
        """Known values to mask in what people, models and tools exchange.

        Names and patterns prove nothing there. A password that is an ordinary word is left out: masking it everywhere
        would reveal it by the gaps.
        """
        return self._distinctive_secrets


def _is_distinctive(value: str) -> bool:
    """Whether it is unlikely to occur by chance: long, or not only letters or digits."""
    return len(value) >= _LONG or not (value.isalpha() or value.isdigit())
