"""Masks secrets in everything that is written to disk or logged (POL-06, TRC-03)."""

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

# PWD alone is every shell's current folder; DB_PWD is a password. A desktop's session is its name.
_SECRET_NAME = re.compile(
    r"(?<!^DESKTOP)(?:(?:^|_)(?:API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|SESSION|API_HASH)|_PWD)$", re.I
)


def is_secret_name(name: str) -> bool:
    """Whether an environment variable or field of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


def environment_secrets(environment: Mapping[str, str]) -> Iterator[str]:
    """What variables hold that must not be written down: values of a secret's name, and passwords in addresses."""
    for name, value in environment.items():
        if is_secret_name(name):
            yield value
        yield from passwords_in_url(value)


def passwords_in_url(address: str) -> Iterator[str]:
    """The password of an address (`scheme://user:password@host`), as it is written there and as it is meant."""
    if "://" not in address or "@" not in address:
        return
    with contextlib.suppress(ValueError):
        password = urlsplit(address).password or ""
        yield from (password, unquote(password))


class Redactor:
    """Masks known secret values in whatever form they come, and anything that has the shape of one.

    One for each process: whoever gets to know of a secret teaches it here, and everything that is written down asks it.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._unsaid: set[str] = set()
        self._all_secrets, self._distinctive_secrets = SecretMatcher(()), SecretMatcher(())
        self.learn(secrets)

    @classmethod
    def from_environment(cls) -> Redactor:
        return cls(environment_secrets(os.environ))

    def learn(self, secrets: Iterable[str], *, spoken: bool = True) -> None:
        """Mask these values from now on. Short ones would mask ordinary words, so they are left out.

        With `spoken=False` they are masked where something is written down, and left alone where people, models and
        tools speak to each other: a folder or an address that may hold a secret, or may be what the talk is about.
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
        """The same for nested data; fields with a secret's name are masked whole."""
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
        """Every value that is masked in logs, traces and errors."""
        return self._all_secrets

    @property
    def distinctive_secrets(self) -> SecretMatcher:
        """The known values alone, for what people, models and tools say to each other.

        A name or a shape proves nothing there. A password that is an ordinary word is left out: it would be taken out
        of every sentence that has the word, and whoever reads the sentence learns the password by its gap.
        """
        return self._distinctive_secrets


def _is_distinctive(value: str) -> bool:
    """Whether nobody says it by chance: it is long, or made of letters and of something else."""
    return len(value) >= _LONG or not (value.isalpha() or value.isdigit())
