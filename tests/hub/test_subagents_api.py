"""What a subagent's process can reach in the hub: its own task, narrower tools, its parent's books."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2 as httpx
import pytest
from sqlalchemy import Connection, select

from annabelle.core.contract import ModelCall, Reserve, TokenUsage
from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.core.tools import JsonObject
from annabelle.hub.app import make_app
from annabelle.hub.boot import RunningHub
from annabelle.hub.security.identities import SubagentScope
from annabelle.store import tables
from hub.task_hubs import Work, a_hub, turn

TASK = "task_0123456789abcdef0123456789"


@pytest.fixture
async def machine(home: Home) -> AsyncIterator[RunningHub]:
    async with a_hub(home, Work()) as made:
        yield made


def client(machine: RunningHub, errand: SubagentScope) -> httpx.AsyncClient:
    headers = {"X-Annabelle-Token": machine.hub.security.identities.admit("annabelle", errand)}
    transport = httpx.ASGITransport(make_app(machine.hub))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers)


@pytest.mark.req("AGT-04")
async def test_it_sees_and_calls_what_its_errand_allows_inside_its_parents_policy(machine: RunningHub) -> None:
    context = await turn(machine)
    errand = SubagentScope(TASK, context.message_id or "", allowed=("do_*",), denied=("do_once",))
    async with client(machine, errand) as http:
        listed = (await http.get("/tools/list")).json()["tools"]
        assert [tool["name"] for tool in listed] == ["do_again"]
        with machine.hub.conversations.turns.lend_to_subagent(TASK, context):
            body: JsonObject = {"name": "do_again", "message_id": TASK, "call_id": f"{TASK}:1:0", "arguments": {}}
            assert (await http.post("/tools/call", json=body)).json()["text"] == "The page says hello."
            refused = await http.post("/tools/call", json=body | {"name": "do_once", "call_id": f"{TASK}:1:1"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed")
        over = await http.post("/tools/call", json=body | {"call_id": f"{TASK}:2:0"})
        assert over.status_code == 403

    def rows(conn: Connection) -> list[tuple[object, ...]]:
        calls = tables.tool_calls.c
        return [tuple(row) for row in conn.execute(select(calls.tool, calls.agent_id, calls.message_id, calls.trust))]

    assert await machine.hub.storage.database.read(rows) == [("do_again", "annabelle", context.message_id, "untrusted")]


@pytest.mark.req("AGT-04")
async def test_it_can_not_act_for_another_turn_of_the_agent_it_works_for(machine: RunningHub) -> None:
    context = await turn(machine)
    async with client(machine, SubagentScope(TASK, context.message_id or "")) as http:
        for message_id in (context.message_id, "msg_other"):
            body: JsonObject = {
                "name": "do_again",
                "message_id": message_id,
                "call_id": f"{message_id}:9:9",
                "arguments": {},
            }
            refused = await http.post("/tools/call", json=body)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed")
        assert (await http.get("/status")).status_code == 403


@pytest.mark.req("AGT-04", "CST-09")
async def test_its_model_calls_are_booked_under_its_parent_and_the_message_it_works_for(machine: RunningHub) -> None:
    context = await turn(machine)
    reserve = Reserve(
        call_id=f"{TASK}:1:m100", agent_id="someone", user_id=OWNER, message_id=TASK, purpose="chat",
        provider="groq", model="llama", estimated_input_tokens=10,
    )  # fmt: skip
    call = ModelCall(
        call_id=reserve.call_id, agent_id="someone", user_id=OWNER, message_id=TASK, trace_id=None, purpose="chat",
        provider="groq", model="llama", usage=TokenUsage(input_tokens=10, output_tokens=2), duration_ms=1,
    )  # fmt: skip
    async with client(machine, SubagentScope(TASK, context.message_id or "")) as http:
        for path, body in (("reserve", reserve), ("settle", call)):
            answer = await http.post(f"/internal/ledger/{path}", content=body.model_dump_json())
            assert answer.is_success

    def row(conn: Connection) -> tuple[object, ...]:
        calls = tables.model_calls.c
        return tuple(conn.execute(select(calls.agent_id, calls.message_id, calls.state)).one())

    assert await machine.hub.storage.database.read(row) == ("annabelle", context.message_id, "settled")
