"""Sortable, prefixed ids: `msg_01k…` is readable in logs and sorts by creation time."""

from __future__ import annotations

import re
import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_CHARS, _RANDOM_CHARS = 10, 16
_PATTERN = re.compile(rf"[a-z]{{2,8}}_[{_ALPHABET}]{{{_TIME_CHARS + _RANDOM_CHARS}}}")


class IdMaker:
    """Makes ids that increase within one process, even when the clock goes back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_millis = 0
        self._last_random = 0

    def make(self, prefix: str) -> str:
        with self._lock:
            millis = time.time_ns() // 1_000_000
            if millis > self._last_millis:
                self._last_millis, self._last_random = millis, secrets.randbits(5 * _RANDOM_CHARS - 1)
            else:
                self._last_random += 1
            return f"{prefix}_{_encode(self._last_millis, _TIME_CHARS)}{_encode(self._last_random, _RANDOM_CHARS)}"


def _encode(number: int, width: int) -> str:
    chars = [""] * width
    for position in range(width - 1, -1, -1):
        chars[position] = _ALPHABET[number & 31]
        number >>= 5
    return "".join(chars)


def is_id(text: str, prefix: str | None = None) -> bool:
    return _PATTERN.fullmatch(text) is not None and (prefix is None or text.startswith(prefix + "_"))


_maker = IdMaker()
new_id = _maker.make
