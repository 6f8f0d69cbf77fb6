"""The door: what every request passes before a resource sees it."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable

import httpx2 as httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from annabelle.core.errors import StorageTrouble
from annabelle.core.settings import Settings
from annabelle.core.trace import current_trace
from annabelle.hub.security.identities import Identities
from annabelle.hub.security.request_guard import RequestGuard, RequestGuardConfig, error_response

TOKEN = "the-owner-s-own-token-0123456789"
Opened = Callable[..., httpx.AsyncClient]


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the body and answers who the caller is."""
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    identity = scope.get("state", {}).get("identity")
    text = f"{identity.kind if identity else 'nobody'} {size} {current_trace()}"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": text.encode()})


@pytest.fixture
def identities() -> Identities:
    return Identities(TOKEN)


@pytest.fixture
async def opened(identities: Identities) -> AsyncIterator[Opened]:
    clients: list[httpx.AsyncClient] = []

    def make(**settings: object) -> httpx.AsyncClient:
        door = RequestGuard(inside, RequestGuardConfig.from_settings(Settings.model_validate(settings), identities))
        client = httpx.AsyncClient(transport=httpx.ASGITransport(door), base_url="http://127.0.0.1:8010")
        clients.append(client)
        return client

    yield make
    for client in clients:
        await client.aclose()


def code(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()["error"]
    assert set(body) >= {"code", "message", "hint", "trace_id"}
    assert body["trace_id"] == answer.headers["x-trace-id"]
    return answer.status_code, body["code"]


@pytest.mark.req("API-01")
async def test_health_needs_no_token_and_everything_else_does(opened: Opened) -> None:
    client = opened()
    assert (await client.get("/health")).status_code == 200
    assert code(await client.get("/status")) == (401, "unauthorized")
    assert code(await client.get("/status", headers={"X-Annabelle-Token": TOKEN[:-1]})) == (401, "unauthorized")
    assert code(await client.get("/status", headers={"X-Annabelle-Token": ""})) == (401, "unauthorized")


@pytest.mark.req("API-01")
@pytest.mark.parametrize(
    "headers",
    [{"X-Annabelle-Token": TOKEN}, {"Authorization": f"Bearer {TOKEN}"}, {"authorization": f"bearer {TOKEN}"}],
)
async def test_the_token_is_taken_from_either_header(opened: Opened, headers: dict[str, str]) -> None:
    answer = await opened().get("/status", headers=headers)
    assert answer.text.startswith("owner")


@pytest.mark.incident("I-01")
@pytest.mark.req("API-05")
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8010", "", "[::2]:8010", "localhost.evil"])
async def test_a_rebound_host_name_is_refused(opened: Opened, host: str) -> None:
    answer = await opened().get("/status", headers={"Host": host, "X-Annabelle-Token": TOKEN})
    assert code(answer) == (403, "not_allowed")


@pytest.mark.req("API-05")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8010", "LOCALHOST", "[::1]:8010"])
async def test_loopback_names_are_served(opened: Opened, host: str) -> None:
    assert (await opened().get("/status", headers={"Host": host, "X-Annabelle-Token": TOKEN})).status_code == 200


@pytest.mark.incident("I-01")
@pytest.mark.req("API-05")
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9999", "http://localhost"])
async def test_a_page_of_another_origin_is_refused_even_with_the_token(opened: Opened, origin: str) -> None:
    for path in ("/status", "/health"):
        answer = await opened().get(path, headers={"Origin": origin, "X-Annabelle-Token": TOKEN})
        assert code(answer) == (403, "not_allowed")
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.req("API-05", "UX-02")
async def test_the_page_works_behind_a_proxy_with_tls(opened: Opened) -> None:
    client = opened(annabelle_allowed_hosts="annabelle.example")
    headers = {"Host": "annabelle.example", "X-Annabelle-Token": TOKEN}
    assert (await client.get("/status", headers=headers | {"Origin": "https://annabelle.example"})).status_code == 200
    for foreign in ("https://evil.annabelle.example", "https://annabelle.example:99", "ftp://annabelle.example"):
        assert code(await client.get("/status", headers=headers | {"Origin": foreign})) == (403, "not_allowed")


@pytest.mark.req("API-05")
async def test_an_origin_that_was_allowed_gets_cors_headers_and_no_other_does(opened: Opened) -> None:
    client = opened(annabelle_cors_origins="https://my.page, http://other.page")
    preflight = await client.options("/message", headers={"Origin": "https://my.page"})
    assert preflight.status_code == 204
    assert "X-Annabelle-Token" in preflight.headers["access-control-allow-headers"]
    answer = await client.get("/status", headers={"Origin": "https://my.page", "X-Annabelle-Token": TOKEN})
    assert answer.headers["access-control-allow-origin"] == "https://my.page"
    refused = await client.get("/status", headers={"Origin": "https://my.page"})
    assert code(refused) == (401, "unauthorized")
    assert code(await client.options("/message", headers={"Origin": "https://evil.page"})) == (403, "not_allowed")


@pytest.mark.req("API-05")
async def test_a_body_over_the_limit_is_refused_announced_or_not(opened: Opened) -> None:
    client = opened(annabelle_max_body_bytes=1000)
    headers = {"X-Annabelle-Token": TOKEN}

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b"x" * 100

    assert code(await client.post("/message", headers=headers, content=b"x" * 1001)) == (413, "too_large")
    assert code(await client.post("/message", headers=headers, content=pieces())) == (413, "too_large")
    fits = await client.post("/message", headers=headers, content=b"x" * 1000)
    assert fits.text.startswith("owner 1000")


@pytest.mark.req("API-05")
async def test_the_rate_limit_says_when_to_come_back_and_spares_agents(opened: Opened, identities: Identities) -> None:
    client = opened(annabelle_rate_limit_per_minute=3)
    answers = [await client.get("/status", headers={"X-Annabelle-Token": TOKEN}) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert int(answers[3].headers["retry-after"]) >= 1
    assert code(answers[3]) == (429, "too_many_requests")
    agent = {"X-Annabelle-Token": identities.admit("annabelle")}
    assert {(await client.get("/tools/list", headers=agent)).status_code for _ in range(10)} == {200}


@pytest.mark.req("HUB-01")
async def test_an_agent_reaches_tools_and_the_ledger_only_while_its_process_lives(
    opened: Opened, identities: Identities
) -> None:
    client, secret = opened(), identities.admit("annabelle")
    agent = {"X-Annabelle-Token": secret}
    assert (await client.get("/tools/list", headers=agent)).text.startswith("agent")
    assert (await client.post("/internal/ledger/reserve", headers=agent)).status_code == 200
    for path in ("/status", "/message", "/agents", "/threads", "/openapi.json", "/internalx"):
        assert code(await client.get(path, headers=agent)) == (403, "not_allowed")
    owner = {"X-Annabelle-Token": TOKEN}
    assert code(await client.post("/internal/ledger/reserve", headers=owner)) == (403, "not_allowed")
    identities.revoke(secret)
    assert code(await client.get("/tools/list", headers=agent)) == (401, "unauthorized")


@pytest.mark.req("API-04", "TRC-01")
async def test_a_trace_id_is_carried_through_and_a_foreign_one_replaced(opened: Opened) -> None:
    client, headers = opened(), {"X-Annabelle-Token": TOKEN}
    own = "tr_01k9zq3v7k0000000000000000"
    answer = await client.get("/status", headers={**headers, "X-Trace-Id": own})
    assert answer.headers["x-trace-id"] == own
    assert answer.text.endswith(own)
    forged = await client.get("/status", headers={**headers, "X-Trace-Id": "tr_<script>"})
    assert forged.headers["x-trace-id"].startswith("tr_")
    assert forged.headers["x-trace-id"] != "tr_<script>"


@pytest.mark.req("API-04")
async def test_an_unexpected_error_answers_in_the_one_shape_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ZeroDivisionError("a secret inside")

    door = RequestGuard(broken, RequestGuardConfig.from_settings(Settings.model_validate({}), Identities(TOKEN)))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(door), base_url="http://127.0.0.1") as client:
        answer = await client.get("/health")
    assert code(answer) == (500, "internal_error")
    assert "secret" not in answer.text
    assert "a secret inside" in caplog.text


@pytest.mark.req("API-01")
async def test_a_websocket_is_refused_and_reaches_nothing_inside(identities: Identities) -> None:
    reached: list[str] = []
    sent: list[Message] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        reached.append(scope["type"])

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    guard = RequestGuard(app, RequestGuardConfig.from_settings(Settings.model_validate({}), identities))
    await guard({"type": "websocket", "path": "/events", "headers": []}, receive, send)
    assert (reached, [(one["type"], one["code"]) for one in sent]) == ([], [("websocket.close", 1008)])
    await guard({"type": "lifespan"}, receive, send)
    assert reached == ["lifespan"]


@pytest.mark.req("UX-02")
def test_a_full_disk_is_told_and_what_is_not_known_is_not() -> None:
    full = error_response(OSError(errno.ENOSPC, "No space left on device"), "tr_1")
    assert (full.status_code, b"The disk is full." in full.body) == (StorageTrouble.http_status, True)
    unknown = error_response(OSError(errno.EIO, "of somebody's own"), "tr_1")
    assert (unknown.status_code, b"somebody" in unknown.body) == (500, False)
