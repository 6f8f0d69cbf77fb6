"""Cuts a byte stream into lines without ever holding more than one message may have."""

from __future__ import annotations

from dataclasses import dataclass

_EDGE = 400
"""Bytes kept from both ends of a line that is dropped: enough to find the id of the request it answers."""


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line that was too long to keep."""

    head: bytes
    tail: bytes
    size: int


class LineBuffer:
    """Feed it what was read; it gives back whole lines, and a note in place of a line over the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None
        self._tail = b""

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        if b"\n" not in data:
            self._keep(data)
            return []
        first, *rest = data.split(b"\n")
        self._keep(first)
        lines: list[bytes | Oversized] = [self._take()]
        for piece in rest[:-1]:
            self._keep(piece)
            lines.append(self._take())
        if rest[-1]:
            self._keep(rest[-1])
        return lines

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._head is None and self._size <= self._limit:
            self._parts.append(piece)
            return
        if self._head is None:
            self._head = b"".join([*self._parts, piece[:_EDGE]])[:_EDGE]
            self._parts.clear()
        self._tail = (self._tail + piece)[-_EDGE:]

    def _take(self) -> bytes | Oversized:
        taken: bytes | Oversized
        if self._head is not None:
            taken = Oversized(self._head, self._tail, self._size)
        else:
            taken = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        self._size, self._head, self._tail = 0, None, b""
        return taken
