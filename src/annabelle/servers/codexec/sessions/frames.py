"""Tells answers of a session's driver from what the code prints: both come through the same pipe."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast

_MOST_ANSWER_BYTES = 1_000_000


class Frames:
    """Splits a stream. An answer stands after the mark, up to the end of its line; all else is output.

    The mark has a random word that the driver is told at its start, so no print can contain it by chance or by intent.
    """

    def __init__(self, mark: bytes, output: Callable[[bytes], None], answer: Callable[[bytes], None]) -> None:
        self._mark = mark
        self._output = output
        self._answer = answer
        self._pending = b""

    def feed(self, data: bytes) -> None:
        """Take the next bytes. A mark may be cut anywhere between two of them."""
        self._pending += data
        while self._pending:
            start = self._pending.find(self._mark)
            if start < 0:
                held = self._beginning_of_mark()
                self._print(len(self._pending) - held)
                return
            self._print(start)
            end = self._pending.find(b"\n")
            if end < 0 and len(self._pending) < _MOST_ANSWER_BYTES:
                return
            end = len(self._pending) if end < 0 else end
            line, self._pending = self._pending[len(self._mark) : end], self._pending[end + 1 :]
            self._answer(line)

    def close(self) -> None:
        """The stream has ended: what looked like the beginning of a mark was none."""
        self._print(len(self._pending))

    def _print(self, count: int) -> None:
        if count:
            self._output(self._pending[:count])
            self._pending = self._pending[count:]

    def _beginning_of_mark(self) -> int:
        longest = min(len(self._mark) - 1, len(self._pending))
        return next((size for size in range(longest, 0, -1) if self._mark.startswith(self._pending[-size:])), 0)


def read_answer(line: bytes) -> dict[str, object]:
    """An answer of the driver; an empty one when the code has tampered with it."""
    try:
        answer: object = json.loads(line)
    except ValueError:
        return {}
    return cast("dict[str, object]", answer) if isinstance(answer, dict) else {}
