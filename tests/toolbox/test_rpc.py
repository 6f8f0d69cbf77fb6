"""The conversation itself, against a peer that says exactly what a test wants."""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator

import pytest

from annabelle.core.tools import JsonObject
from annabelle.toolbox.mcp.rpc import AnswerTooLarge, ConnectionLost, ProtocolMismatch, RpcClient, RpcError
from annabelle.toolbox.mcp.stdio import McpSession
from support.timing import seconds

LIMIT = 10_000


class Peer:
    """The server's end of the pipes."""

    def __init__(self) -> None:
        self.reads, ours_out = os.pipe()
        ours_in, self.writes = os.pipe()
        self.ours = (ours_out, ours_in)
        self.heard: list[JsonObject] = []
        self.noticed: list[str] = []
        self._buffer = b""
        os.set_blocking(self.reads, False)

    def say(self, *messages: object) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            os.write(self.writes, line + b"\n")

    def result(self, number: object, result: JsonObject) -> None:
        self.say({"jsonrpc": "2.0", "id": number, "result": result})

    def error(self, number: object, code: int, data: object = None) -> None:
        self.say({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": "no", "data": data}})

    async def hear(self) -> JsonObject:
        async with asyncio.timeout(seconds(10)):
            while b"\n" not in self._buffer:
                try:
                    self._buffer += os.read(self.reads, 65536)
                except BlockingIOError:
                    await asyncio.sleep(0.005)
        line, self._buffer = self._buffer.split(b"\n", 1)
        return json.loads(line)

    def leave(self) -> None:
        for descriptor in (self.reads, self.writes):
            if descriptor >= 0:
                os.close(descriptor)
        self.reads = self.writes = -1


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer = Peer()
    yield peer
    peer.leave()


@pytest.fixture
async def rpc(peer: Peer) -> AsyncIterator[RpcClient]:
    rpc = RpcClient("peer", LIMIT, lambda method, params: peer.noticed.append(method))
    await rpc.open(*peer.ours)
    yield rpc
    rpc.end("the test is over")


async def test_answers_find_their_requests_in_any_order(rpc: RpcClient, peer: Peer) -> None:
    first, second = asyncio.create_task(rpc.request("a")), asyncio.create_task(rpc.request("b"))
    ids = {str(message["method"]): message["id"] for message in [await peer.hear(), await peer.hear()]}
    peer.result(ids["b"], {"is": "b"})
    peer.result(ids["a"], {"is": "a"})
    assert [await first, await second] == [{"is": "a"}, {"is": "b"}]


@pytest.mark.req("HUB-03")
async def test_garbage_is_passed_over_and_logged_once_per_burst(
    rpc: RpcClient, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    asked = asyncio.create_task(rpc.request("a"))
    number = (await peer.hear())["id"]
    peer.say(b"Starting up...", b"\xff\xfe\x00", b"[1, 2]", b"null", b'{"jsonrpc": "1.0"}', b"", b"{" * 500)
    peer.result(number, {"fine": True})
    assert await asked == {"fine": True}
    assert rpc.garbage_lines == 6
    assert len(caplog.records) == 1


@pytest.mark.req("HUB-03")
@pytest.mark.parametrize("id_first", [True, False])
async def test_an_answer_that_is_too_large_fails_its_call_alone(rpc: RpcClient, peer: Peer, id_first: bool) -> None:
    big, small = asyncio.create_task(rpc.request("big")), asyncio.create_task(rpc.request("small"))
    ids = {str(message["method"]): message["id"] for message in [await peer.hear(), await peer.hear()]}
    text = {"text": "x" * 50_000}
    if id_first:
        peer.say({"jsonrpc": "2.0", "id": ids["big"], "result": text})
    else:
        peer.say({"jsonrpc": "2.0", "result": text, "id": ids["big"]})
    with pytest.raises(AnswerTooLarge):
        await big
    peer.result(ids["small"], {"ok": 1})
    assert await small == {"ok": 1}


@pytest.mark.req("RTR-04")
async def test_whoever_stops_waiting_cancels_at_the_server(rpc: RpcClient, peer: Peer) -> None:
    asked = asyncio.create_task(rpc.request("slow"))
    number = (await peer.hear())["id"]
    asked.cancel()
    cancelled = await peer.hear()
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"] == {"requestId": number, "reason": "the caller stopped waiting"}
    peer.result(number, {"late": True})
    peer.say({"jsonrpc": "2.0", "id": "ask", "method": "ping"})
    assert (await peer.hear())["result"] == {}, "a late answer does no harm"


@pytest.mark.req("HUB-03")
async def test_a_server_that_leaves_fails_every_open_request(rpc: RpcClient, peer: Peer) -> None:
    asked = [asyncio.create_task(rpc.request("a")) for _ in range(3)]
    await peer.hear()
    peer.leave()
    for request in asked:
        with pytest.raises(ConnectionLost) as caught:
            await request
        assert caught.value.sent
    with pytest.raises(ConnectionLost) as after:
        await rpc.request("b")
    assert not after.value.sent


async def test_a_server_that_does_not_read_makes_callers_wait_not_memory_grow(rpc: RpcClient, peer: Peer) -> None:
    waiting = [asyncio.create_task(rpc.request("big", {"text": "x" * 500_000})) for _ in range(20)]
    done, _ = await asyncio.wait(waiting, timeout=0.2)
    assert not done
    assert rpc._pipes is not None
    assert rpc._pipes._writer.get_write_buffer_size() < 3_000_000
    for request in waiting:
        request.cancel()
    await asyncio.wait(waiting)


async def test_what_a_server_asks_of_us_is_politely_declined(rpc: RpcClient, peer: Peer) -> None:
    peer.say({"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {}})
    answer = await peer.hear()
    assert answer["id"] == 7
    assert "error" in answer


async def negotiated(session: McpSession) -> asyncio.Task[None]:
    return asyncio.create_task(session.negotiate())


async def test_a_modern_server_is_spoken_to_without_a_handshake(rpc: RpcClient, peer: Peer) -> None:
    session = McpSession(rpc, 5)
    negotiating = await negotiated(session)
    probe = await peer.hear()
    assert probe["method"] == "server/discover"
    peer.result(probe["id"], {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}})
    await negotiating
    assert session.protocol == "2026-07-28"
    await session.listen()
    assert (await peer.hear())["method"] == "subscriptions/listen"
    peer.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}})
    pinging = asyncio.create_task(session.ping())
    ping = await peer.hear()
    assert ping["method"] == "server/discover", "the 2026 revision has no ping"
    peer.result(ping["id"], {})
    await pinging
    assert peer.noticed == ["notifications/tools/list_changed"]


@pytest.mark.parametrize("code", [-32601, -32600, -32602, 0])
async def test_a_server_that_does_not_know_discover_gets_the_handshake(rpc: RpcClient, peer: Peer, code: int) -> None:
    session = McpSession(rpc, 5)
    negotiating = await negotiated(session)
    peer.error((await peer.hear())["id"], code)
    hello = await peer.hear()
    assert hello["method"] == "initialize"
    peer.result(hello["id"], {"protocolVersion": "2025-06-18", "capabilities": {}})
    await negotiating
    assert (await peer.hear())["method"] == "notifications/initialized"
    assert session.protocol == "2025-06-18"
    pinging = asyncio.create_task(session.ping())
    ping = await peer.hear()
    assert ping["method"] == "ping"
    peer.result(ping["id"], {})
    await pinging


async def test_a_server_that_ignores_discover_gets_the_handshake_after_a_while(rpc: RpcClient, peer: Peer) -> None:
    session = McpSession(rpc, 0.05)
    negotiating = await negotiated(session)
    await peer.hear()
    hello = await peer.hear()
    assert hello["method"] == "initialize", "the probe must not be cancelled: the protocol forbids it"
    peer.result(hello["id"], {"protocolVersion": "2024-11-05"})
    await negotiating
    assert session.protocol == "2024-11-05"


async def test_a_slow_modern_server_is_recognised_by_its_refusal_of_the_handshake(rpc: RpcClient, peer: Peer) -> None:
    session = McpSession(rpc, 0.05)
    negotiating = await negotiated(session)
    await peer.hear()
    hello = await peer.hear()
    peer.error(hello["id"], -32022, {"supported": ["2026-07-28"]})
    again = await peer.hear()
    assert again["method"] == "server/discover"
    peer.result(again["id"], {"supportedVersions": ["2026-07-28"]})
    await negotiating
    assert session.protocol == "2026-07-28"


async def test_a_server_of_an_unknown_future_is_refused(rpc: RpcClient, peer: Peer) -> None:
    negotiating = await negotiated(McpSession(rpc, 5))
    peer.error((await peer.hear())["id"], -32022, {"supported": ["2031-01-01"]})
    with pytest.raises(ProtocolMismatch, match="2031-01-01"):
        await negotiating


async def test_every_page_of_a_tool_list_is_read(rpc: RpcClient, peer: Peer) -> None:
    listing = asyncio.create_task(McpSession(rpc, 5).list_tools())
    peer.result((await peer.hear())["id"], {"tools": [{"name": "a"}], "nextCursor": "2"})
    second = await peer.hear()
    assert second["params"] == {"cursor": "2"}
    peer.result(second["id"], {"tools": [{"name": "b"}]})
    assert [tool["name"] for tool in await listing] == ["a", "b"]


async def test_an_error_keeps_its_code(rpc: RpcClient, peer: Peer) -> None:
    asked = asyncio.create_task(rpc.request("a"))
    peer.error((await peer.hear())["id"], -32602)
    with pytest.raises(RpcError) as caught:
        await asked
    assert caught.value.code == -32602


async def test_a_lone_surrogate_in_an_argument_does_not_break_the_stream(rpc: RpcClient, peer: Peer) -> None:
    asked = asyncio.create_task(rpc.request("a", {"text": "\ud800"}))
    number = (await peer.hear())["id"]
    peer.result(number, {})
    assert await asked == {}
