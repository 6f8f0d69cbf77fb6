"""The API of a running hub: shapes, errors, bad input."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx2 as httpx
import pytest

from annabelle.core.trace import read_trace
from hub.hubs import HubProcess, wait_for


def code(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()["error"]
    assert set(body) >= {"code", "message", "hint", "trace_id"}
    return answer.status_code, body["code"]


@pytest.mark.req("API-01", "HUB-01")
def test_the_hub_is_on_loopback_and_healthy_without_a_token(shared_hub: HubProcess) -> None:
    answer = httpx.get(f"{shared_hub.url}/health")
    started = shared_hub.http.get("/status").json()["startedAt"]
    assert answer.json() == {"status": "ok", "phase": "ready", "version": "0.1.0", "startedAt": started}
    assert shared_hub.url.startswith("http://127.0.0.1:")
    assert code(httpx.get(f"{shared_hub.url}/status")) == (401, "unauthorized")


@pytest.mark.req("API-02", "HUB-02")
def test_the_status_shows_servers_agents_tools_and_one_start_up_notice(shared_hub: HubProcess) -> None:
    status = shared_hub.http.get("/status").json()
    assert status["status"] == "ready"
    assert [server["name"] for server in status["servers"]] == ["filer", "memory"]
    listed = shared_hub.http.get("/tools/list").json()["tools"]
    assert status["toolCount"] == len(listed)
    memory = next(one for one in status["servers"] if one["name"] == "memory")
    theirs = [tool.get("audience", "everyone") for tool in listed if tool["server"] == "memory"]
    assert set(theirs) == {"everyone", "people"}
    assert memory["tools"] == theirs.count("everyone"), "what a model can see"
    assert [agent["agentId"] for agent in status["agents"]] == ["annabelle"]
    assert [notice["topic"] for notice in status["notices"]].count("startup") == 1


@pytest.mark.req("HUB-02")
def test_a_fire_is_carried_out_once_the_hub_is_up(shared_hub: HubProcess) -> None:
    begun = shared_hub.http.post("/skills/Nightly Backup/run")
    assert begun.status_code == 200, begun.text

    def state() -> str:
        listed = shared_hub.http.get("/fires").json()["fires"]
        return next(str(one["state"]) for one in listed if one["fireId"] == begun.json()["fireId"])

    wait_for(lambda: state() == "finished", "the end of the fire")


@pytest.mark.req("API-02", "RTR-02", "RTR-05")
def test_tools_are_listed_with_the_hub_s_own_and_each_names_its_service_and_group(shared_hub: HubProcess) -> None:
    answer = shared_hub.http.get("/tools/list")
    tools = {tool["name"]: tool["description"] for tool in answer.json()["tools"]}
    assert {"filer_read_file", "get_status", "send_message", "send_telegram", "get_tool_catalog"} <= set(tools)
    tags = {name: description.partition("] ")[0] for name, description in tools.items()}
    assert (tags["filer_read_file"], tags["get_status"]) == ("[Files | files", "[Annabelle | Core")
    assert answer.headers["x-tools-version"] == answer.json()["version"]


@pytest.mark.req("API-02", "RTR-03")
def test_a_tool_is_called_and_wrong_arguments_name_the_field(shared_hub: HubProcess) -> None:
    http = shared_hub.http
    created = http.post(
        "/tools/call", json={"name": "filer_create_file", "arguments": {"path": "a.txt", "content": "hello"}}
    )
    assert created.status_code == 200
    assert created.json()["is_error"] is False
    read = http.post("/tools/call", json={"name": "filer_read_file", "arguments": {"path": "a.txt"}})
    assert "hello" in read.json()["text"]
    wrong = http.post("/tools/call", json={"name": "filer_read_file", "arguments": {"path": 7}})
    assert code(wrong) == (422, "invalid_arguments")
    assert wrong.json()["error"]["field"] == "path"


@pytest.mark.req("API-02")
def test_agents_are_listed_paused_and_resumed(shared_hub: HubProcess) -> None:
    http = shared_hub.http
    assert [(agent["agentId"], agent["paused"]) for agent in http.get("/agents").json()["agents"]] == [
        ("annabelle", False)
    ]
    paused = http.post("/agents/annabelle/pause", json={"reason": "a look around"})
    listed = http.get("/agents").json()["agents"][0]
    resumed = http.post("/agents/annabelle/resume")  # before anything can fail: the hub is shared
    assert (paused.status_code, resumed.status_code) == (200, 200)
    assert (listed["paused"], listed["pauseReason"]) == (True, "a look around")
    assert (resumed.json()["paused"], http.get("/agents").json()["agents"][0]["paused"]) == (False, False)


@pytest.mark.req("RTR-04")
def test_an_unknown_tool_answers_with_the_closest_names(shared_hub: HubProcess) -> None:
    answer = shared_hub.http.post("/tools/call", json={"name": "filer_raed_file"})
    assert code(answer) == (404, "unknown_tool")
    assert "filer_read_file" in answer.json()["error"]["hint"]


@pytest.mark.req("API-01")
@pytest.mark.parametrize(("text", "why"), [("", "it is empty"), (" \n\t", "there is nothing in it but spaces")])
def test_a_message_without_words_is_refused_in_a_sentence(shared_hub: HubProcess, text: str, why: str) -> None:
    answer = shared_hub.http.post("/message", json={"text": text})
    assert (answer.status_code, answer.json()["error"]["message"]) == (422, f"text is not valid: {why}.")


@pytest.mark.incident("I-04")
def test_an_approval_a_caller_brings_along_counts_for_nothing(shared_hub: HubProcess) -> None:
    call = {"name": "filer_list_grants", "arguments": {"approved": True}, "approved": True}
    answer = shared_hub.http.post("/tools/call", json=call)
    assert code(answer) == (422, "invalid_arguments")
    assert answer.json()["error"]["field"] == "approved"
    quiet = shared_hub.http.post("/tools/call", json={"name": "filer_list_grants", "approved": True})
    assert "approved" not in quiet.text


@pytest.mark.req("RTR-05")
def test_the_hub_s_own_tools_answer(shared_hub: HubProcess) -> None:
    def call(name: str, **arguments: object) -> dict[str, object]:
        return shared_hub.http.post("/tools/call", json={"name": name, "arguments": arguments}).json()

    assert "is ready" in str(call("get_status")["text"])
    catalogue = call("get_tool_catalog", mcp_name="filer")
    assert "filer_read_file" in str(catalogue["text"])
    assert "get_status" not in str(catalogue["text"])
    assert call("get_tool_catalog", mcp_name="nobody")["is_error"] is True
    assert call("send_message", message="hello?", chat_id="nowhere")["is_error"] is True


@pytest.mark.req("API-04")
@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/nothing", (404, "not_found")),
        ("DELETE", "/status", (405, "method_not_allowed")),
        ("GET", "/message", (405, "method_not_allowed")),
        ("GET", "/messages/msg_unknown", (404, "not_found")),
        ("GET", "/messages/%00", (422, "invalid_arguments")),
        ("GET", "/threads/thr_unknown/messages", (404, "not_found")),
        ("GET", "/threads/thr_unknown/events", (404, "not_found")),
        ("GET", "/threads?limit=0", (422, "invalid_arguments")),
        ("GET", "/threads?limit=many", (422, "invalid_arguments")),
        ("GET", "/events?after=-1", (422, "invalid_arguments")),
        ("GET", "/events?after=99999999999999999999999", (422, "invalid_arguments")),
        ("GET", "/costs?by=moon", (422, "invalid_arguments")),
        ("POST", "/agents/nobody/pause", (404, "not_found")),
        ("POST", "/agents/nobody/restart", (404, "not_found")),
    ],
)
def test_every_error_has_the_one_shape(
    shared_hub: HubProcess, method: str, path: str, expected: tuple[int, str]
) -> None:
    answer = shared_hub.http.request(method, path)
    assert code(answer) == expected
    assert answer.json()["error"]["trace_id"] == answer.headers["x-trace-id"]


@pytest.mark.req("API-04")
@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "text"),
        (b"{", "JSON"),
        (b"\xff\xfe{}", "JSON"),
        (b'{"text": "\xff"}', "JSON"),
        (b'{"text": "\\ud800"}', "JSON"),
        (b"[]", "object"),
        (b'{"text": 5}', "text"),
        (b'{"text": ""}', "text"),
        (b'{"text": " \\n "}', "text"),
        (b'{"text": "x", "chatId": ""}', "chatId"),
        (b'{"text": "x", "chatId": "a\\u0000b"}', "chatId"),
        (b'{"text": "x", "nonsense": 1}', "nonsense"),
        (b'{"text": "x", "approved": true}', "approved"),
        (b"[" * 200_000, "JSON"),
    ],
)
def test_a_bad_body_is_refused_and_named(shared_hub: HubProcess, body: bytes, says: str) -> None:
    answer = shared_hub.http.post("/message", content=body)
    assert code(answer) == (422, "invalid_arguments")
    assert says in answer.json()["error"]["message"]


@pytest.mark.req("API-05")
def test_ten_megabytes_are_refused_announced_or_in_chunks(shared_hub: HubProcess) -> None:
    body = json.dumps({"text": "x" * 10_000_000}).encode()

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(body), 65536):
            yield body[start : start + 65536]

    assert code(shared_hub.http.post("/message", content=body)) == (413, "too_large")
    assert code(shared_hub.http.post("/message", content=chunks())) == (413, "too_large")
    assert shared_hub.http.get("/health").status_code == 200


@pytest.mark.incident("I-02")
def test_nothing_can_be_read_or_changed_without_the_token(shared_hub: HubProcess) -> None:
    document = shared_hub.http.get("/openapi.json").json()
    guarded = [
        (method, path.replace("{", "").replace("}", ""))
        for path, methods in document["paths"].items()
        for method in methods
        if path not in ("/health", "/hooks/{secret}", "/sessions")  # the last two bring a secret of their own
    ]
    assert len(guarded) >= 100
    with httpx.Client(base_url=shared_hub.url) as stranger:
        for method, path in [*guarded, ("post", "/internal/ledger/reserve"), ("post", "/internal/ledger/settle")]:
            assert stranger.request(method.upper(), path, json={}).status_code == 401, path
    assert shared_hub.http.post("/internal/ledger/settle", json={}).status_code == 403


@pytest.mark.req("TRC-01", "TRC-02")
def test_a_tool_call_leaves_its_trace_in_the_file(shared_hub: HubProcess) -> None:
    trace_id = "tr_01k9zq3v7k00000000000000ab"
    shared_hub.http.post("/tools/call", json={"name": "get_status"}, headers={"X-Trace-Id": trace_id})
    recorded = read_trace(shared_hub.home.root / "logs" / "traces.jsonl", trace_id)
    assert [line["event"] for line in recorded if line["mcp"] == "hub"] == ["tool.called", "tool.finished"]
