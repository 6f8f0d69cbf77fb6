"""Secrets by handle: in memory only, for a short time, for the one who asked."""

from __future__ import annotations

import base64
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from annabelle.core.errors import RetryByModel

PREFIX = "secret://onepassword/"
_MOST = 500
_RANDOM_BYTES = 10


@dataclass(frozen=True, slots=True)
class Holder:
    """The agent, or the person, a handle was given to. Nobody else can use it."""

    agent_id: str | None
    user_id: str | None


@dataclass(frozen=True, slots=True)
class Secret:
    """What a handle stands for: a value, or a reference to read anew, as one-time codes need. `sites` are the web
    addresses of its item."""

    item: str
    label: str
    value: str | None = field(default=None, repr=False)
    reference: str | None = None
    sites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Kept:
    secret: Secret
    holder: Holder
    until: float


class Handles:
    """At most so many, the oldest given up first; each is good for so many seconds."""

    def __init__(self, *, seconds: float, most: int = _MOST, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._most, self._clock = most, clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, secret: Secret, holder: Holder) -> str:
        """A new handle for it."""
        self._forget_old()
        handle = PREFIX + base64.b32encode(secrets.token_bytes(_RANDOM_BYTES)).decode().lower()
        self._kept[handle] = _Kept(secret, holder, self._clock() + self.seconds)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return handle

    def find(self, handle: str, holder: Holder) -> Secret:
        """What it stands for. One that is over, unknown or somebody else's is told in the same words."""
        self._forget_old()
        kept = self._kept.get(handle)
        if kept is None or kept.holder != holder:
            raise RetryByModel(
                "This handle of a secret is not known, or no longer.",
                hint="Read the secret again with onepassword_read_secret, and use the new handle.",
            )
        return kept.secret

    def _forget_old(self) -> None:
        now = self._clock()
        while self._kept and next(iter(self._kept.values())).until <= now:
            self._kept.popitem(last=False)
