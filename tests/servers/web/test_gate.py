"""The browser's way out, spoken to directly."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from hypothesis import given, strategies as st

from annabelle.servers.kit.host_access import AllowedPrivateHosts, HostAccess
from annabelle.servers.web.proxy import PROXY_HEADER, BadHttpHead, EgressProxy, connect_target, plain_target
from servers.web.pages import Site
from support.timing import seconds


@pytest_asyncio.fixture(loop_scope="session")
async def gate(site: Site) -> AsyncIterator[tuple[EgressProxy, int]]:
    made = EgressProxy(HostAccess(AllowedPrivateHosts.parse(f"127.0.0.1:{site.port}")))
    port = urlsplit(await made.start()).port
    assert port is not None
    yield made, port
    await made.close()


async def _ask(port: int, request: bytes) -> bytes:
    async with asyncio.timeout(seconds(10)):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    return answer


def _key(gate: EgressProxy) -> bytes:
    return b"Proxy-Authorization: Basic " + base64.b64encode(f"{gate.user}:{gate.password}".encode())


@pytest.mark.req("SRV-BRW")
async def test_no_other_program_of_this_machine_uses_the_gate(gate: tuple[EgressProxy, int], site: Site) -> None:
    wrong = b"Proxy-Authorization: Basic " + base64.b64encode(b"annabelle:guess")
    for key in (b"X: y", wrong):
        for line in (f"GET {site.url}/ HTTP/1.1", f"CONNECT 127.0.0.1:{site.port} HTTP/1.1"):
            answer = await _ask(gate[1], line.encode() + b"\r\n" + key + b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 407 ")
    assert site.connections == 0


@pytest.mark.req("SRV-BRW")
async def test_a_request_is_passed_on_without_what_is_the_gates(gate: tuple[EgressProxy, int], site: Site) -> None:
    site.pages["/a"] = "content"
    request = f"POST {site.url}/a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nProxy-Connection: keep-alive\r\n"
    answer = await asyncio.wait_for(_one(gate[1], request.encode() + _key(gate[0]) + b"\r\n\r\nbody"), seconds(10))
    assert b"Connection: close\r\n" in answer, "the browser must not use this connection for another site"
    assert answer.endswith(b"content")
    assert site.heads[0].startswith("POST /a?b=c HTTP/1.1\r\n")
    assert "proxy" not in site.heads[0].lower()
    assert site.bodies == [b"body"]


async def _one(port: int, request: bytes) -> bytes:
    """One answer of a site that keeps its connection open: as a browser, hang up when the answer is whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    body = await reader.readexactly(length)
    writer.close()
    await writer.wait_closed()
    return head + body


@pytest.mark.req("SRV-BRW")
@pytest.mark.incident("I-15")
async def test_a_name_is_looked_up_once_and_the_very_address_that_was_judged_is_used(site: Site) -> None:
    """Looked up again by the system for the connection, it could mean another address by then."""
    asked: list[str] = []

    async def judged(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    gate = EgressProxy(HostAccess(AllowedPrivateHosts.parse(f"127.0.0.1:{site.port}"), judged))
    site.pages["/"] = "content"
    port = urlsplit(await gate.start()).port
    assert port is not None
    request = f"GET http://known-to-the-judge-alone.test:{site.port}/ HTTP/1.1\r\nHost: x\r\n".encode()
    try:
        answer = await asyncio.wait_for(_one(port, request + _key(gate) + b"\r\n\r\n"), seconds(10))
    finally:
        await gate.close()
    assert answer.endswith(b"content")
    assert asked == ["known-to-the-judge-alone.test"]


@pytest.mark.req("SRV-BRW")
async def test_what_browsers_overlook_is_overlooked(gate: tuple[EgressProxy, int]) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.0 200\nbad line\nConnection: keep-alive\nX: y\n\nbody"
        )
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    gate[0].host_access = HostAccess(AllowedPrivateHosts.parse(f"127.0.0.1:{port}"))
    request = f"GET http://127.0.0.1:{port} HTTP/1.1\r\n".encode() + _key(gate[0]) + b"\r\n\r\n"
    assert await _ask(gate[1], request) == b"HTTP/1.0 200 \r\nX: y\r\nConnection: close\r\n\r\nbody"
    server.close()


@pytest.mark.req("SRV-BRW")
async def test_a_refusal_is_marked_as_the_gates_own(gate: tuple[EgressProxy, int], private: Site) -> None:
    request = f"GET {private.url}/ HTTP/1.1\r\n".encode() + _key(gate[0]) + b"\r\n\r\n"
    answer = await _ask(gate[1], request)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert f"{PROXY_HEADER}: {gate[0].own_mark}".encode() in answer
    assert gate[0].refusals[-1].error.code == "not_allowed"
    assert private.connections == 0


@pytest.mark.req("SRV-BRW")
@pytest.mark.parametrize(
    "request_line",
    [
        b"GET / HTTP/1.1",
        b"GET https://example.com/ HTTP/1.1",
        b"GET file:///etc/passwd HTTP/1.1",
        b"CONNECT example.com HTTP/1.1",
        b"CONNECT :443 HTTP/1.1",
        b"CONNECT a:99999999 HTTP/1.1",
        b"\xff\xfe",
        b"GET http://127.0.0.1:1/ HTTP/1.1\r\nno colon",
    ],
)
async def test_what_is_no_request_to_a_proxy_ends_the_connection(
    gate: tuple[EgressProxy, int], request_line: bytes
) -> None:
    answer = await _ask(gate[1], request_line + b"\r\n" + _key(gate[0]) + b"\r\n\r\n")
    assert answer == b""


@pytest.mark.req("SRV-BRW")
async def test_the_browsers_own_questions_go_nowhere(gate: tuple[EgressProxy, int]) -> None:
    request = b"CONNECT content-autofill.googleapis.com:443 HTTP/1.1\r\n" + _key(gate[0]) + b"\r\n\r\n"
    assert (await _ask(gate[1], request)).startswith(b"HTTP/1.1 403 ")
    assert not gate[0].refusals, "no page asked for it, so no result mentions it"


@pytest.mark.req("SRV-BRW")
@given(st.binary(max_size=200))
def test_any_target_is_read_or_refused(blob: bytes) -> None:
    for read in (connect_target, plain_target):
        try:
            target = read(blob)
        except BadHttpHead:
            continue
        assert target.host
        assert 0 <= target.port <= 65535
        assert target.path.startswith(b"/")
