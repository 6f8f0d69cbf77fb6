"""The loopback HTTP client: whole answers, streams, and every way a dying peer can break them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from annabelle.core.loopback_http import LoopbackHttpClient
from support.timing import seconds

Peer = Callable[[list[bytes]], Awaitable[LoopbackHttpClient]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A peer that answers each connection's requests with the given bytes, one after the other; b'' hangs up."""
    servers: list[asyncio.Server] = []
    wires: list[LoopbackHttpClient] = []
    talks: list[asyncio.Task[None]] = []

    async def start(answers: list[bytes]) -> LoopbackHttpClient:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            talks.append(task)
            try:
                while await reader.readuntil(b"\r\n\r\n"):
                    answer = answers.pop(0) if answers else b""
                    writer.write(answer)
                    if not answer or answer.endswith(b"!"):
                        break
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        servers.append(server)
        wires.append(LoopbackHttpClient("127.0.0.1", server.sockets[0].getsockname()[1], {"X-Annabelle-Token": "t"}))
        return wires[-1]

    yield start
    for wire in wires:
        wire.close()
    for server in servers:
        server.close()
    if talks:
        await asyncio.wait(talks, timeout=seconds(5))


async def test_answers_are_read_whole_and_the_connection_is_used_again(peer: Peer) -> None:
    chunked = b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    wire = await peer([OK, chunked, OK])
    assert [(await wire.request("GET", "/", {})).body for _ in range(3)] == [b"hello", b"abcde", b"hello"]


async def test_a_connection_that_was_closed_while_it_was_kept_is_replaced(peer: Peer) -> None:
    wire = await peer([OK, b"", OK])
    assert (await wire.request("GET", "/", {})).status == 200
    assert (await wire.request("POST", "/", {}, b"{}")).body == b"hello"


async def test_lines_come_as_they_are_sent_however_they_are_cut(peer: Peer) -> None:
    chunks = [b"one\n", b"two", b"\nthre", b"e", b""]
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body
    wire = await peer([answer, OK])
    assert [line async for _, line in wire.stream_lines("/", {}, 5)] == [b"one", b"two", b"three"]
    assert (await wire.request("GET", "/", {})).body == b"hello"


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"HTTP/1.1 2!",
        b"garbage\r\n\r\n!",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n!",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n!",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab!",
    ],
)
async def test_a_peer_that_dies_or_talks_nonsense_is_a_connection_error(peer: Peer, broken: bytes) -> None:
    with pytest.raises(ConnectionError):
        await (await peer([broken])).request("GET", "/", {})
    with pytest.raises(ConnectionError):
        _ = [line async for line in (await peer([broken])).stream_lines("/", {}, 5)]


async def _collect(wire: LoopbackHttpClient, lines: list[bytes]) -> None:
    async for _, line in wire.stream_lines("/", {}, 5):
        lines.append(line)


async def test_lines_that_came_before_the_peer_died_are_read(peer: Peer) -> None:
    wire = await peer([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n5\r\ntw!"])
    lines: list[bytes] = []
    with pytest.raises(ConnectionError):
        await _collect(wire, lines)
    assert lines == [b"one"]


async def test_an_answer_nobody_asked_for_is_not_taken_for_the_next_one(peer: Peer) -> None:
    wire = await peer([OK + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong", OK])
    assert (await wire.request("GET", "/", {})).body == b"hello"
    assert (await wire.request("GET", "/", {})).body == b"hello"


async def test_a_silent_peer_is_a_timeout_and_a_missing_one_refuses(peer: Peer) -> None:
    wire = await peer([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"])
    with pytest.raises(TimeoutError):
        await wire.request("GET", "/", {}, timeout=0.05)
    wire.close()
    with pytest.raises(ConnectionError):
        await wire.request("GET", "/", {})
