"""Output of a program, kept within bounds while it comes: the beginning, the end, and how much there was."""

from __future__ import annotations

from collections import deque

HEAD_BYTES = 600_000
TAIL_BYTES = 400_000


class Tape:
    """Takes any amount of bytes and holds at most a megabyte of them."""

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self.total = 0

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= self._tail_bytes:
            self._tail_size -= len(self._tail.popleft())

    def text(self) -> str:
        """What was kept, as text; what was not is counted in between."""
        tail = b"".join(self._tail)[-self._tail_bytes :]
        left_out = self.total - len(self._head) - len(tail)
        if left_out <= 0:
            return _decoded(bytes(self._head) + tail)
        return f"{_decoded(bytes(self._head))}\n… {left_out} bytes left out …\n{_decoded(tail)}"


def shortened(text: str, limit: int) -> str:
    """The beginning and the end of a long text, where the result and the error of a program usually are."""
    if len(text) <= limit:
        return text
    head = limit * 3 // 5
    return f"{text[:head]}\n… {len(text) - limit} characters left out …\n{text[head - limit :]}"


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", errors="replace").replace("\x00", "\\x00")
