"""Unpacking the body of an answer in pieces."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

import httpx2
import pytest

from annabelle.servers.kit.http_client import BoundedBody


class Sent(httpx2.AsyncByteStream):
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


@pytest.mark.req("SRV-SRC")
@pytest.mark.parametrize("size", [65_535, 65_536, 65_700, 66_050, 131_172])
async def test_a_bare_stream_is_unpacked_to_its_last_byte(size: int) -> None:
    """Its last bytes may stand for more than fits into the last piece, and no trailer follows that would tell."""
    packing = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packing.compress(b"a" * size) + packing.flush()
    body = BoundedBody(Sent(packed), "deflate", 1_000_000)
    assert b"".join([piece async for piece in body]) == b"a" * size
