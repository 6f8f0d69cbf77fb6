"""Messages and turns through a real hub, a real thinker and a scripted model."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator

import httpx2 as httpx
import pytest

from annabelle.core.trace import read_trace
from hub.hubs import HubProcess, sse, wait_for
from support.few_servers import only
from support.scripted_model import Reply, Rule, ScriptedServer
from support.timing import seconds

LIST = {"name": "filer_list_grants", "arguments": {}}


def plan(say: str, *calls: dict[str, object], **more: object) -> str:
    return json.dumps({"calls": list(calls), "say": say, **more})


def reply(answer: dict[str, object]) -> str:
    assert isinstance(answer["reply"], dict), answer
    return str(answer["reply"]["text"])


@pytest.fixture(scope="module")
def hub(shared_hub: HubProcess) -> HubProcess:
    return shared_hub


@pytest.fixture
def ruled(model: ScriptedServer) -> Iterator[ScriptedServer]:
    """A model that answers by rule: a turn that failed stays in the history, and a plan in it would be read again."""
    model.rules(
        Rule(match="go on", reply=Reply(text="on we go")),
        Rule(match="refuse", reply=Reply.failing(401, "bad key")),
        Rule(match="hang", reply=Reply(hang=True)),
    )
    yield model
    model.rules()


@pytest.mark.req("API-02", "DUR-01", "TRC-01")
def test_a_message_is_answered_and_its_way_is_traced(hub: HubProcess) -> None:
    answer = hub.say(plan("all done", LIST), chatId="traced")
    assert answer["state"] == "done"
    assert reply(answer) == "all done"
    trace_id = str(answer["reply"]["traceId"])  # type: ignore[index]
    recorded = [str(line["event"]) for line in read_trace(hub.home.traces_file, trace_id) if line["mcp"] == "hub"]
    assert recorded[0] == "message.received"
    assert {"turn.started", "tool.called", "tool.finished", "turn.finished"} <= set(recorded)
    assert recorded[-1] == "message.delivered"


@pytest.mark.req("API-02")
def test_without_waiting_it_is_accepted_and_found_later(hub: HubProcess) -> None:
    accepted = hub.http.post("/message", json={"text": plan("later"), "chatId": "later"})
    assert accepted.status_code == 202
    assert accepted.json()["state"] in ("queued", "running", "done")
    message_id = accepted.json()["messageId"]
    found = hub.http.get(f"/messages/{message_id}", params={"wait": seconds(30)}).json()
    assert (found["state"], reply(found)) == ("done", "later")
    listed = hub.http.get(f"/threads/{found['threadId']}/messages").json()["messages"]
    assert [(line["source"], line["text"]) for line in listed][-1] == ("agent", "later")
    assert found["threadId"] in [thread["id"] for thread in hub.http.get("/threads").json()["threads"]]


@pytest.mark.req("MEM-01")
def test_a_conversation_is_kept_in_the_one_database_file(hub: HubProcess) -> None:
    said = plan("kept")
    hub.say(said, chatId="kept")
    file = hub.home.root / "data" / "annabelle.db"
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT content FROM messages WHERE chat_id = 'kept' ORDER BY position").fetchall()
    assert rows == [(said,), ("kept",)]


@pytest.mark.req("DUR-01")
@pytest.mark.incident("I-20")
def test_the_same_external_id_is_one_message_however_often_it_comes(hub: HubProcess) -> None:
    body = {"text": plan("once"), "chatId": "twice", "externalId": "update-7"}
    answers: list[dict[str, object]] = []

    def send() -> None:
        with httpx.Client(base_url=hub.url, headers={"X-Annabelle-Token": hub.token}, timeout=seconds(60)) as http:
            answers.append(http.post("/message", params={"wait": seconds(30)}, json=body).json())

    senders = [threading.Thread(target=send) for _ in range(5)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert len({str(answer["messageId"]) for answer in answers}) == 1
    assert sorted(bool(answer["duplicate"]) for answer in answers) == [False, True, True, True, True]
    listed = hub.http.get(f"/threads/{answers[0]['threadId']}/messages").json()["messages"]
    assert [line["source"] for line in listed] == ["user", "agent"]


@pytest.mark.req("DUR-04", "AGT-02")
def test_messages_of_one_thread_are_answered_in_order_and_threads_side_by_side(hub: HubProcess) -> None:
    sent: dict[str, list[str]] = {"one": [], "two": []}
    for number in range(4):
        for chat in sent:
            body = {"text": plan(f"{chat} {number}", LIST), "chatId": chat}
            sent[chat].append(hub.http.post("/message", json=body).json()["messageId"])
    for chat, ids in sent.items():
        last = hub.http.get(f"/messages/{ids[-1]}", params={"wait": seconds(60)}).json()
        assert last["state"] == "done"
        listed = hub.http.get(f"/threads/{last['threadId']}/messages").json()["messages"]
        answers = [line["text"] for line in listed if (line["source"], line["type"]) == ("agent", "text")]
        assert answers == [f"{chat} {number}" for number in range(4)]


@pytest.mark.req("THR-04")
def test_the_stream_of_a_turn_can_be_cut_and_taken_up_without_loss_or_double(hub: HubProcess) -> None:
    accepted = hub.http.post("/message", json={"text": plan("streamed text", LIST), "chatId": "sse"}).json()
    position, seen = accepted["lastEventId"], []
    while not seen or seen[-1]["event"] != "done":
        path, headers = f"/threads/{accepted['threadId']}/events", {"Last-Event-ID": str(position)}
        with hub.http.stream("GET", path, headers=headers) as stream:
            for event in sse(stream.iter_lines()):
                seen.append(event)
                position = event["id"]
                if len(seen) % 3 == 0 or event["event"] == "done":
                    break  # the connection breaks here
    stored = hub.http.get(f"/messages/{accepted['messageId']}/events").json()["events"]
    assert [event["id"] for event in seen] == [event["seq"] for event in stored]
    kinds = [event["event"] for event in seen]
    assert {"tool_start", "tool_complete", "usage", "text", "message", "done"} <= set(kinds)
    assert kinds.index("tool_start") < kinds.index("tool_complete") < kinds.index("message") < kinds.index("done")
    assert kinds.count("message") == kinds.count("done") == 1
    assert seen[kinds.index("message")]["data"]["data"]["text"] == "streamed text"


@pytest.mark.req("THR-04")
def test_the_global_stream_carries_all_threads(hub: HubProcess) -> None:
    first = hub.say(plan("a"), chatId="global-a")
    hub.say(plan("b"), chatId="global-b")
    with hub.http.stream("GET", "/events", params={"after": first["lastEventId"]}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        said: list[str] = []
        for event in sse(stream.iter_lines()):
            if event["event"] == "message":
                said.append(event["data"]["data"]["text"])  # type: ignore[index]
            if len(said) == 2:
                break
    assert said == ["a", "b"]


@pytest.mark.req("RTR-07", "RTR-05")
@pytest.mark.parametrize("tool", ["send_message", "send_telegram"])
def test_what_an_agent_sends_by_tool_is_the_only_answer(hub: HubProcess, tool: str) -> None:
    call = {"name": tool, "arguments": {"message": "by tool"}}
    answer = hub.say(plan("and again", call), chatId=f"by-{tool}")
    assert answer["state"] == "done"
    listed = hub.http.get(f"/threads/{answer['threadId']}/messages").json()["messages"]
    assert [line["text"] for line in listed if (line["source"], line["type"]) == ("agent", "text")] == ["by tool"]
    assert reply(answer) == "by tool"
    events = hub.http.get(f"/messages/{answer['messageId']}/events").json()["events"]
    assert [event["data"]["text"] for event in events if event["type"] == "message"] == ["by tool"]


@pytest.mark.req("CST-09", "LLM-07")
def test_every_model_call_is_in_the_book(hub: HubProcess) -> None:
    def calls() -> int:
        return sum(total["calls"] for total in hub.http.get("/costs", params={"by": "agent"}).json()["totals"])

    before = calls()
    hub.say(plan("counted", LIST), chatId="counted")
    assert calls() == before + 2
    totals = hub.http.get("/costs", params={"by": "model"}).json()["totals"]
    assert totals[0]["inputTokens"] > 0
    assert wait_for(lambda: all(t["open"] == 0 for t in hub.http.get("/costs").json()["totals"]), "all settled")


@pytest.mark.req("DUR-05")
def test_a_model_that_refuses_ends_in_an_honest_error_the_user_can_see(hub: HubProcess, ruled: ScriptedServer) -> None:
    answer = hub.say("refuse this", chatId="refused")
    assert answer["state"] == "failed"
    assert answer["reply"]["source"] == "error"  # type: ignore[index]
    assert answer["reply"]["metadata"]["retryable"] is False  # type: ignore[index]
    assert reply(hub.say("go on", chatId="refused")) == "on we go"


@pytest.mark.incident("I-27")
def test_a_turn_can_be_stopped_and_the_thread_goes_on(hub: HubProcess, ruled: ScriptedServer) -> None:
    ruled.clear()
    accepted = hub.http.post("/message", json={"text": "hang", "chatId": "stopped"}).json()
    waiting = hub.http.post("/message", json={"text": "not begun", "chatId": "stopped"}).json()
    wait_for(lambda: ruled.requests, "the model to be asked")
    unbegun = hub.http.post(f"/messages/{waiting['messageId']}/cancel").json()
    assert (unbegun["state"], unbegun["reply"]["metadata"]["error"]["code"]) == ("failed", "cancelled")
    stopped = hub.http.post(f"/messages/{accepted['messageId']}/cancel", params={"wait": seconds(30)}).json()
    assert stopped["state"] == "failed"
    assert stopped["reply"]["metadata"]["error"]["code"] == "cancelled"
    assert reply(hub.say("go on", chatId="stopped")) == "on we go"


@pytest.mark.req("LOOP-09")
def test_stop_said_in_the_chat_ends_what_runs_and_what_waits_there(hub: HubProcess, ruled: ScriptedServer) -> None:
    running = hub.http.post("/message", json={"text": "hang", "chatId": "stopping"}).json()
    waiting = hub.http.post("/message", json={"text": "go on", "chatId": "stopping"}).json()
    other = hub.http.post("/message", json={"text": "hang", "chatId": "not-stopping"}).json()
    wait_for(lambda: hub.http.get(f"/messages/{running['messageId']}").json()["state"] == "running", "it runs")
    assert reply(hub.say(" /STOP ", chatId="stopping")) == "Stopped, with 1 more that waited."
    for message in (running, waiting):
        wait_for(lambda m=message: hub.http.get(f"/messages/{m['messageId']}").json()["state"] == "failed", "stopped")
    assert hub.http.get(f"/messages/{other['messageId']}").json()["state"] in ("queued", "running")
    assert reply(hub.say("/stop", chatId="not-stopping")) == "Stopped."
    assert reply(hub.say("/stop", chatId="stopping")) == "Nothing is running here."
    asked = json.dumps([request.body for request in ruled.requests]).casefold()
    assert "/stop" not in asked, "no model is asked what to do about it"


@pytest.mark.req("INT-01")
@pytest.mark.parametrize("word", ["Stop!", "arrête", "przestań"])
def test_a_plain_stop_ends_what_runs_and_is_talk_where_nothing_does(
    hub: HubProcess, ruled: ScriptedServer, word: str
) -> None:
    chat = f"plain-{word}"
    running = hub.http.post("/message", json={"text": "hang", "chatId": chat}).json()
    wait_for(lambda: hub.http.get(f"/messages/{running['messageId']}").json()["state"] == "running", "it runs")
    assert reply(hub.say(word, chatId=chat)) == "Stopped."
    assert "Nothing is running" not in reply(hub.say(word, chatId=f"{chat}-idle")), "a model answers"


@pytest.mark.req("LOOP-09")
@pytest.mark.incident("I-20")
def test_a_stop_that_comes_twice_stops_nothing_that_was_asked_for_in_between(
    hub: HubProcess, ruled: ScriptedServer
) -> None:
    assert reply(hub.say("/stop", chatId="stop-twice", externalId="update-8")) == "Nothing is running here."
    running = hub.http.post("/message", json={"text": "hang", "chatId": "stop-twice"}).json()
    wait_for(lambda: hub.http.get(f"/messages/{running['messageId']}").json()["state"] == "running", "it runs")
    again = hub.say("/stop", chatId="stop-twice", externalId="update-8")
    assert (again["duplicate"], reply(again)) == (True, "Nothing is running here.")
    assert hub.http.get(f"/messages/{running['messageId']}").json()["state"] == "running"
    assert reply(hub.say("/stop", chatId="stop-twice", externalId="update-9")) == "Stopped."


@pytest.mark.req("AGT-05")
def test_a_paused_agent_answers_at_once_with_the_reason_also_after_a_restart(
    make_hub: Callable[..., HubProcess],
) -> None:
    hub = make_hub(**only()).start()
    paused = hub.http.post("/agents/annabelle/pause", json={"reason": "it costs too much"}).json()
    assert (paused["paused"], paused["available"], paused["pauseReason"]) == (True, False, "it costs too much")
    hub.stop()
    hub.start()
    answer = hub.say(plan("never"))
    assert answer["state"] == "failed"
    assert "it costs too much" in reply(answer)
    assert hub.http.get("/agents").json()["agents"][0]["state"] == "stopped"
    resumed = hub.http.post("/agents/annabelle/resume", json={"resetWindow": True}).json()
    assert (resumed["paused"], resumed["pauseReason"]) == (False, None)
    assert reply(hub.say(plan("here again"))) == "here again"


@pytest.mark.req("AGT-05")
def test_a_paused_agent_answers_while_a_turn_hangs_and_leaves_alone_what_waited(
    hub: HubProcess, ruled: ScriptedServer
) -> None:
    ruled.clear()
    hanging = hub.http.post("/message", json={"text": "hang", "chatId": "paused"}).json()
    waiting = hub.http.post("/message", json={"text": "go on", "chatId": "paused"}).json()
    wait_for(lambda: ruled.requests, "the model to be asked")
    hub.http.post("/agents/annabelle/pause", json={"reason": "it costs too much"})
    try:
        late = hub.http.post("/message", json={"text": "go on", "chatId": "paused"}).json()
        assert late["state"] == "failed", "it need not wait for its turn"
        hub.http.post(f"/messages/{hanging['messageId']}/cancel", params={"wait": seconds(30)})
        left = hub.http.get(f"/messages/{waiting['messageId']}", params={"wait": seconds(30)}).json()
    finally:
        hub.http.post("/agents/annabelle/resume")
    assert left["state"] == "failed"
    assert "it costs too much" in reply(left)
    assert len(ruled.requests) == 1, "what waited was not processed"
    assert reply(hub.say("go on", chatId="paused")) == "on we go"


@pytest.mark.req("HUB-08")
def test_without_a_thinker_messages_are_refused_and_tools_still_served(make_hub: Callable[..., HubProcess]) -> None:
    hub = make_hub(THINKER_ENABLED="false").start()
    answer = hub.http.post("/message", json={"text": "hello"})
    assert answer.status_code == 503
    assert "THINKER_ENABLED" in answer.json()["error"]["message"]
    assert hub.http.post("/tools/call", json={"name": "filer_list_grants"}).status_code == 200
