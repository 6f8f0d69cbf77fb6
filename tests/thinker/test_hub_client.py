"""The thinker's side of the hub: kept connections, a tool list that is fresh, and patience."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest

from annabelle.core.contract import ToolCall
from annabelle.core.errors import ErrorBody, HubUnreachable, OperatorMistake, Unavailable
from annabelle.core.tools import ToolResult
from annabelle.core.trace import use_trace
from annabelle.thinker.hub_client import HubRetryPolicy, HubTransport, ThinkerHubClient
from support.timing import seconds
from thinker.fake_hub import FakeHub, tool
from thinker.thinkers import wait_for

QUICK = HubRetryPolicy(first_seconds=0.01, longest_seconds=0.02, tell_after_seconds=0.05, give_up_after_seconds=0.3)


@pytest.fixture
async def client(hub: FakeHub) -> AsyncIterator[ThinkerHubClient]:
    made = ThinkerHubClient.connect_to(hub.url, "secret")
    yield made
    made.close()


def call(number: int = 0, name: str = "look_up") -> ToolCall:
    return ToolCall(name=name, arguments={"text": "x" * 5000}, call_id=f"msg:1:{number}", message_id="msg")


@pytest.mark.req("THK-03", "RTR-06")
async def test_the_tool_list_is_fetched_once_and_again_at_once_when_it_changed(
    hub: FakeHub, client: ThinkerHubClient
) -> None:
    assert [spec.name for spec in (await client.tools()).tools] == ["look_up", "write_note", "send_message"]
    await client.tools()
    assert hub.lists == 1
    hub.tools.append(tool("new_one"))
    hub.version = "2"
    await client.call(call(), "owner")
    assert "new_one" in [spec.name for spec in (await client.tools()).tools]
    assert hub.lists == 2


@pytest.mark.req("THK-03")
async def test_the_tool_list_is_fetched_again_after_ten_minutes(
    hub: FakeHub, client: ThinkerHubClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=1_000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("annabelle.thinker.hub_client.time", clock)
    await client.tools()
    for elapsed, lists in ((599, 1), (602, 2), (1_200, 2), (1_203, 3)):
        clock.now = 1_000.0 + elapsed
        await client.tools()
        assert hub.lists == lists, f"after {elapsed} seconds"


@pytest.mark.req("TRC-01")
async def test_the_trace_goes_along_in_every_request(hub: FakeHub, client: ThinkerHubClient) -> None:
    with use_trace("tr_of_this_turn"):
        await client.call(call(), "owner")
    assert hub.traces == {"tr_of_this_turn"}
    assert hub.tokens == {"secret"}


async def test_many_requests_at_once_each_get_their_own_answer(hub: FakeHub, client: ThinkerHubClient) -> None:
    hub.handlers["look_up"] = lambda arguments: ToolResult(text=str(arguments["n"]))
    calls = [ToolCall(name="look_up", arguments={"n": n}, call_id=f"m:1:{n}") for n in range(40)]
    results = await asyncio.gather(*(client.call(one, "owner") for one in calls))
    assert [result.text for result in results] == [str(n) for n in range(40)]


@pytest.mark.req("LOOP-07")
async def test_a_refusal_of_the_hub_is_a_result_for_the_model(hub: FakeHub, client: ThinkerHubClient) -> None:
    hub.refusals["look_up"] = (422, ErrorBody(code="invalid_arguments", message="`n` is missing.", hint="Give n."))
    result = await client.call(call(), "owner")
    assert result.is_error
    assert (result.error and result.error.code, result.text) == ("invalid_arguments", "`n` is missing. Give n.")


@pytest.mark.req("THK-06")
@pytest.mark.parametrize("status", [503, 507], ids=["starting", "disk full"])
async def test_a_hub_that_comes_back_is_found_again_and_the_wait_was_told_once(hub: FakeHub, status: int) -> None:
    told: list[str] = []
    spoken = asyncio.Event()

    def tell(reason: str) -> None:
        told.append(reason)
        spoken.set()

    code = "unavailable" if status == 503 else "storage_trouble"
    busy = (status, ErrorBody(code=code, message="The hub has a bad moment."))
    hub.refusals["look_up"] = busy
    client = ThinkerHubClient(HubTransport(hub.url, {}), HubRetryPolicy(0.01, 0.02, 0.05, 30))
    client.on_wait(tell)
    waiting = asyncio.create_task(client.call(call(), "owner"))
    await asyncio.wait_for(spoken.wait(), seconds(10))
    await asyncio.to_thread(wait_for, lambda: len(hub.calls) > 8)  # it keeps trying, and does not keep telling
    hub.refusals.clear()
    result = await asyncio.wait_for(waiting, seconds(10))
    client.close()
    assert not result.is_error
    assert told == ["The hub has a bad moment. The turn waits for it and goes on by itself."]
    assert len(set(hub.call_ids())) == 1
    assert len(hub.effects) == 1


@pytest.mark.req("THK-06")
async def test_a_hub_that_stays_away_is_given_up_with_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    client = ThinkerHubClient(HubTransport(f"http://127.0.0.1:{port}", {}), QUICK)
    with pytest.raises(HubUnreachable, match="can not be reached"):
        await client.tools()


async def test_a_kept_connection_that_the_hub_closed_is_replaced(hub: FakeHub, client: ThinkerHubClient) -> None:
    await client.call(call(0), "owner")
    for connection in client._transport._http._idle:  # what a hub does to a connection that was idle for long
        assert connection._transport is not None
        connection._transport.close()
        connection.reusable = True
    result = await client.call(call(1), "owner")
    assert not result.is_error


async def test_garbage_instead_of_http_counts_as_unreachable() -> None:
    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"\x00\x01 this is not HTTP\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(garbage, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        client = ThinkerHubClient(HubTransport(f"http://127.0.0.1:{port}", {}), QUICK)
        with pytest.raises(HubUnreachable):
            await client.tools()
        client.close()


async def test_a_secret_the_hub_does_not_know_is_not_waited_out(hub: FakeHub) -> None:
    client = ThinkerHubClient(HubTransport(hub.url, {}), HubRetryPolicy(give_up_after_seconds=600))
    with pytest.raises(Unavailable, match="status 404"):
        await client._request_or_fail("GET", "/nothing-here")
    client.close()


def test_only_a_plain_address_is_taken() -> None:
    with pytest.raises(OperatorMistake):
        HubTransport("https://elsewhere.example", {})
