"""The body of an answer, unpacked in small pieces and cut off before it fills the memory."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Iterator

import httpx2

from annabelle.core.errors import TooLarge, Unavailable

MAX_BODY_BYTES = 50_000_000
ENCODINGS = "gzip, deflate"
"""What a server may pack with; all other ways unpack without a bound."""

_PIECE = 65_536
_PACKED = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class BoundedBody(httpx2.AsyncByteStream):
    """A body that raises once it has given `max_bytes`. A packed one is unpacked here, a piece at a time: a few
    kilobytes that unpack to gigabytes cost no more than the bound."""

    def __init__(self, inner: httpx2.AsyncByteStream, encoding: str, max_bytes: int) -> None:
        self._inner, self._max = inner, max_bytes
        self._unpacked = _unpacker(encoding)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        given = 0
        async for packed in self._inner:
            for piece in self._unpacked(packed):
                given += len(piece)
                if given > self._max:
                    raise TooLarge(f"The answer has more than {self._max} bytes, which is more than is read.")
                yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def _unpacker(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return lambda data: iter((data,))
    if encoding not in _PACKED:
        raise Unavailable("The answer is packed in a way that was not asked for, so it is not read.")
    return _Inflated(_PACKED[encoding])


class _Inflated:
    def __init__(self, window: int) -> None:
        self._zlib, self._begun = zlib.decompressobj(window), False

    def __call__(self, data: bytes) -> Iterator[bytes]:
        more = bool(data)
        while more:
            try:
                piece = self._zlib.decompress(data, _PIECE)
            except zlib.error as error:
                if self._begun or data[:2] == b"\x1f\x8b":
                    raise Unavailable("The answer is packed wrongly and can not be read.") from error
                # Some servers send a bare stream where the standard asks for one with a header.
                self._zlib, self._begun = zlib.decompressobj(-zlib.MAX_WBITS), True
                continue
            self._begun = True
            if piece:
                yield piece
            data = self._zlib.unconsumed_tail
            # A full piece: the last bytes taken in may stand for more than was given out.
            more = not self._zlib.eof and (bool(data) or len(piece) == _PIECE)
