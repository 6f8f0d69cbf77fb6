"""Tool calls and ledger entries as a thinker makes them, with its own secret."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx2 as httpx
import pytest

from annabelle.core.contract import ModelCall, Reserve, TokenUsage
from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext
from annabelle.hub.app import make_app
from annabelle.hub.base_setup import HubStart
from annabelle.hub.boot import assemble
from annabelle.hub.context import HubContext
from annabelle.hub.instance import bind_port
from annabelle.store import ledger, messages, threads
from annabelle.toolbox.catalogue import AgentPolicy

AGENTS = {
    "agents": [
        {"agentId": "annabelle", "allowedTools": ["send_*", "get_status"], "deniedTools": ["send_telegram"]},
        {"agentId": "other"},
    ]
}


@pytest.fixture
async def hub(home: Home) -> AsyncIterator[HubContext]:
    """A hub in this process that serves its own tools and starts nothing else."""
    home.agents_file.write_text(json.dumps(AGENTS))
    settings = Settings.model_validate({"annabelle_port": 0, "nursery_enabled": False, "thinker_warm_spare": False})
    with bind_port(0) as sock:
        async with AsyncExitStack() as stack:
            machine = await assemble(HubStart(home, settings, Redactor(), sock, None), stack)
            await machine.hub.agents.start()
            machine.hub.base.lifecycle.mark_ready()
            yield machine.hub


@pytest.fixture
async def agent(hub: HubContext) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"X-Annabelle-Token": hub.security.identities.admit("annabelle")}
    transport = httpx.ASGITransport(make_app(hub))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


@pytest.fixture
async def turn(hub: HubContext) -> AsyncIterator[str]:
    """A turn of the agent that runs."""
    thread = await hub.storage.database.write(
        lambda conn: threads.find_or_create_thread(
            conn, channel="api", chat_id="main", user_id=OWNER, agent_id="annabelle"
        )
    )
    context = CallContext(
        caller="agent", agent_id="annabelle", user_id=OWNER, thread_id=thread.id, chat_id="main", channel="api",
        message_id="msg_1",
    )  # fmt: skip
    with hub.conversations.turns.open(context):
        yield "msg_1"


def call(name: str, message_id: str | None, call_id: str | None = None, **arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments, "message_id": message_id, "call_id": call_id}


@pytest.mark.req("AGT-01", "HUB-01")
@pytest.mark.incident("I-07")
async def test_an_agent_sees_and_calls_only_what_its_policy_allows(agent: httpx.AsyncClient, turn: str) -> None:
    listed = (await agent.get("/tools/list")).json()["tools"]
    assert [tool["name"] for tool in listed] == ["get_status", "send_message"]
    assert (await agent.post("/tools/call", json=call("get_status", turn))).status_code == 200
    for forbidden in ("send_telegram", "get_tool_catalog"):
        answer = await agent.post("/tools/call", json=call(forbidden, turn, message="x"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed")


@pytest.mark.req("AGT-01")
@pytest.mark.incident("I-07")
async def test_a_search_brings_no_profile_along_that_the_agent_may_not_ask_for(
    agent: httpx.AsyncClient, hub: HubContext, turn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = call("memory_retrieve_memories", turn, query="tea", include_profile=True)
    allowed = {"annabelle": AgentPolicy()}

    def policy(agent_id: str) -> AgentPolicy:
        return allowed[agent_id]

    monkeypatch.setattr(hub.agents.registry, "policy", policy)
    answer = (await agent.post("/tools/call", json=asked)).json()
    assert answer["error"]["code"] == "unknown_tool"  # there is no memory here, and nothing else is wrong
    allowed["annabelle"] = AgentPolicy(denied=("memory_get_profile",))
    answer = await agent.post("/tools/call", json=asked)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_allowed")
    plain = call("memory_retrieve_memories", turn, query="tea", include_profile=False)
    assert (await agent.post("/tools/call", json=plain)).json()["error"]["code"] == "unknown_tool"


@pytest.mark.incident("I-10")
async def test_an_agent_can_only_speak_for_its_own_turn(agent: httpx.AsyncClient, turn: str) -> None:
    assert (await agent.post("/tools/call", json=call("get_status", None))).status_code == 422
    assert (await agent.post("/tools/call", json=call("get_status", "msg_2"))).status_code == 403
    assert (await agent.post("/tools/call", json=call("get_status", turn, "msg_2:1:0"))).status_code == 422


@pytest.mark.req("DUR-03", "RTR-07")
async def test_a_repeated_call_id_is_answered_from_the_journal_and_acts_once(
    agent: httpx.AsyncClient, hub: HubContext, turn: str
) -> None:
    said = call("send_message", turn, f"{turn}:1:0", message="once")
    first = (await agent.post("/tools/call", json=said)).json()
    again = (await agent.post("/tools/call", json=said)).json()
    assert (first["replayed"], again["replayed"]) == (False, True)
    assert first["structured"] == again["structured"]
    other = await agent.post("/tools/call", json=call("send_message", turn, f"{turn}:1:0", message="twice"))
    assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
    thread = (await hub.storage.database.read(lambda conn: threads.list_threads(conn, OWNER)))[0]
    listed = await hub.storage.database.read(lambda conn: messages.list_messages(conn, thread.id, OWNER))
    assert [message.content for message in listed] == ["once"]


@pytest.mark.req("RTR-07")
async def test_a_sent_message_may_name_the_message_it_answers(
    agent: httpx.AsyncClient, hub: HubContext, turn: str
) -> None:
    first = (await agent.post("/tools/call", json=call("send_message", turn, f"{turn}:1:0", message="one"))).json()
    answered = first["structured"]["message_id"]
    named = call("send_message", turn, f"{turn}:1:1", message="two", reply_to=answered)
    second = (await agent.post("/tools/call", json=named)).json()["structured"]["message_id"]
    kept = await hub.storage.database.read(lambda conn: messages.load_message(conn, second))
    assert kept.metadata == {"reply_to": answered}
    unknown = call("send_message", turn, f"{turn}:1:2", message="three", reply_to=4711)
    refused = (await agent.post("/tools/call", json=unknown)).json()
    assert (refused["is_error"], "no message 4711 in that chat" in refused["text"]) == (True, True)


@pytest.mark.req("CST-09")
async def test_the_ledger_books_under_the_agent_that_asks_whatever_it_claims(
    agent: httpx.AsyncClient, hub: HubContext
) -> None:
    asked = Reserve(
        call_id="c1", agent_id="other", user_id=OWNER, message_id=None, purpose="chat", provider="p", model="m",
        estimated_input_tokens=5,
    )  # fmt: skip
    answer = await agent.post("/internal/ledger/reserve", content=asked.model_dump_json())
    assert answer.json() == {"call_id": "c1", "allowed": True, "reason": None, "hint": None}
    used = ModelCall(
        call_id="c1", agent_id="other", user_id=OWNER, message_id=None, trace_id=None, purpose="chat", provider="p",
        model="m", usage=TokenUsage(input_tokens=7, output_tokens=2, cost_usd=0.5), duration_ms=1,
    )  # fmt: skip
    for _ in range(2):
        assert (await agent.post("/internal/ledger/settle", content=used.model_dump_json())).status_code == 204
    totals = await hub.storage.database.read(lambda conn: ledger.sum_usage(conn, OWNER, "agent"))
    assert [(total.key, total.calls, total.open, total.usage.input_tokens) for total in totals] == [
        ("annabelle", 1, 0, 7)
    ]
    bad = await agent.post("/internal/ledger/settle", content=b"{}")
    assert bad.status_code == 422
    standing = (await agent.get("/internal/ledger/status")).json()
    assert (standing["currentHourTokens"], standing["hardCap"], standing["activeBuckets"]) == (9, 250_000, 1)
    assert (standing["paused"], standing["pauseReason"]) == (False, None)
