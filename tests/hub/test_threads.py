"""Threads as people see them, through a real hub, a real thinker and a scripted model."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import httpx2 as httpx
import pytest
from sqlalchemy import Connection

from annabelle.core.messages import OWNER, InboundMessage, TurnEvent
from annabelle.core.tool_cells import CellStatus
from annabelle.hub.conversations.thread_page import PageRange, load_thread_page
from annabelle.store import messages
from annabelle.store.database import Database
from annabelle.store.threads import Thread, append_events, find_or_create_thread
from hub.hubs import HubProcess, fresh_home, wait_for
from support.scripted_model import Reply, Rule, ScriptedServer, plan_text
from support.timing import seconds

LIST = ("filer_list_grants", {})
MISSING = ("filer_read_file", {"path": "workspace/not-there.txt"})


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[HubProcess]:
    """A hub that compacts early, whose provider may fail as often as a test wants."""
    home = fresh_home(tmp_path_factory.mktemp("threads"))
    started = HubProcess(
        home,
        model.openai_url,
        FACT_EXTRACTION_ENABLED="false",
        LLM_BREAKER_ERRORS="1000",
        THINKER_SESSION_COMPACTION_MIN_TURNS="2",
        THINKER_SESSION_COMPACTION_THRESHOLD_CHARS="1000",
        THINKER_SESSION_COMPACTION_KEEP_RECENT="1",
        THINKER_SESSION_COMPACTION_COOLDOWN_SECONDS="0",
    ).start()
    yield started
    started.end()


@pytest.fixture
def failing(model: ScriptedServer) -> Iterator[ScriptedServer]:
    model.rules(Rule(match="flaky", reply=Reply.failing(500, "out of order")))
    yield model
    model.rules()


def listed(hub: HubProcess, thread_id: object, **query: int) -> list[dict]:
    answer = hub.http.get(f"/threads/{thread_id}/messages", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["messages"]


def fail(hub: HubProcess, chat: str) -> tuple[str, dict]:
    """The thread and the error of a turn that fails although it is tried again."""
    answer = hub.say("a flaky thing", chatId=chat)
    assert answer["state"] == "failed"
    return str(answer["threadId"]), answer["reply"]  # type: ignore[return-value]


@pytest.mark.req("THR-01")
def test_tool_calls_stand_behind_the_message_whose_turn_made_them(hub: HubProcess) -> None:
    answer = hub.say(plan_text([LIST, MISSING], say="seen"), chatId="cells")
    entries = listed(hub, answer["threadId"])
    assert [(one["type"], one["source"]) for one in entries] == [
        ("text", "user"), ("tool", "agent"), ("tool", "agent"), ("text", "agent"),
    ]  # fmt: skip
    worked, failed = entries[1]["metadata"], entries[2]["metadata"]
    assert (worked["name"], worked["status"], worked["input"], worked["error"]) == (LIST[0], "success", {}, None)
    assert worked["data"]["summary"]
    assert entries[1]["text"] == worked["message"] == "Called filer list grants."
    assert (failed["status"], failed["input"]) == ("failure", MISSING[1])
    assert failed["error"]["code"]
    assert failed["error"]["message"].rstrip(".") in failed["message"]
    assert all(one["processed"] for one in entries)


@pytest.mark.req("THR-01", "THR-02")
def test_pages_in_either_direction_have_each_message_and_each_cell_once(hub: HubProcess) -> None:
    for number in range(4):
        answer = hub.say(plan_text([LIST] * number, say=f"answer {number}"), chatId="pages")
    thread = answer["threadId"]
    whole = [one["id"] for one in listed(hub, thread)]
    assert len(whole) == len(set(whole)) == 8 + 0 + 1 + 2 + 3
    down, at = list[str](), 0
    while page := listed(hub, thread, after=at, limit=3):
        down, at = [*down, *(one["id"] for one in page)], page[-1]["position"]
    up, top = list[str](), 2**62
    while page := listed(hub, thread, before=top, limit=3):
        up, top = [*(one["id"] for one in page), *up], page[0]["position"]
    assert down == up == whole


@pytest.mark.req("THR-01")
def test_a_message_is_processed_once_a_turn_has_taken_it_up(hub: HubProcess, model: ScriptedServer) -> None:
    model.rules(Rule(match="hang", reply=Reply(hang=True)))
    try:
        first = hub.http.post("/message", json={"text": "hang", "chatId": "line"}).json()
        second = hub.http.post("/message", json={"text": "next", "chatId": "line"}).json()

        def states() -> dict[str, bool]:
            return {one["id"]: one["processed"] for one in listed(hub, first["threadId"])}

        wait_for(lambda: states()[first["messageId"]], "the first message to be taken up")
        assert states()[second["messageId"]] is False
        hub.http.post(f"/messages/{first['messageId']}/cancel", params={"wait": seconds(30)})
        wait_for(lambda: states()[second["messageId"]], "the second message to be taken up")
    finally:
        model.rules()


@pytest.mark.req("THR-02", "THR-03")
def test_messages_stay_whatever_becomes_of_the_session(hub: HubProcess) -> None:
    for number in range(4):
        answer = hub.say("long " * 100 + plan_text([LIST], say=f"stays {number}"), chatId="permanent")
    thread = str(answer["threadId"])
    before = listed(hub, thread)
    sessions = hub.home.root / "agents" / "annabelle" / "sessions"
    wait_for(lambda: '"compaction"' in (sessions / f"{thread}.jsonl").read_text(), "the session to be compacted")
    current = hub.http.get(f"/threads/{thread}/histories/current").json()
    assert current["summary"]
    assert 1 <= len(current["turns"]) < 4, "a part of it is only in the summary"
    assert listed(hub, thread) == before

    assert hub.http.post(f"/threads/{thread}/clear").status_code == 200
    assert listed(hub, thread) == before
    assert hub.http.get(f"/threads/{thread}/histories/current").json()["turns"] == []
    (ended,) = hub.http.get(f"/threads/{thread}/histories").json()["histories"]
    assert (ended["reason"], ended["messageCount"]) == ("manual", 8)
    assert ended["summary"]
    assert ended["inputTokens"] > 0
    assert ended["startedAt"] < ended["endedAt"]
    assert "turns" not in ended
    whole = hub.http.get(f"/threads/{thread}/histories/{ended['id']}").json()
    assert [turn["assistant"] for turn in whole["turns"]] == [f"stays {number}" for number in range(4)]
    assert whole["turns"][0]["tools"] == [LIST[0]]
    hub.say("and now?", chatId="permanent")
    assert listed(hub, thread)[: len(before)] == before
    assert len(hub.http.get(f"/threads/{thread}/histories/current").json()["turns"]) == 1


@pytest.mark.req("THR-03")
def test_a_history_of_another_thread_is_not_found(hub: HubProcess) -> None:
    one, other = (hub.say("hello", chatId=chat)["threadId"] for chat in ("history-a", "history-b"))
    hub.http.post(f"/threads/{one}/clear")
    (ended,) = hub.http.get(f"/threads/{one}/histories").json()["histories"]
    assert hub.http.get(f"/threads/{one}/histories/{ended['id']}").status_code == 200
    assert hub.http.get(f"/threads/{one}/histories/msg_unknown").status_code == 404
    missing = hub.http.get(f"/threads/{other}/histories/{ended['id']}")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    assert hub.http.get(f"/threads/{other}/histories").json() == {"histories": []}


@pytest.mark.req("THR-03", "THR-05")
def test_what_failed_is_tried_again_once_however_many_ask_at_once(hub: HubProcess, failing: ScriptedServer) -> None:
    thread, error = fail(hub, "retried")
    assert (error["metadata"]["retryable"], error["metadata"]["attempts"]) == (True, 6)
    failing.rules(Rule(match="flaky", reply=Reply(text="here now")))
    path, answers = f"/threads/{thread}/messages/{error['id']}/retry", list[httpx.Response]()

    def ask() -> None:
        with httpx.Client(base_url=hub.url, headers={"X-Annabelle-Token": hub.token}, timeout=seconds(60)) as http:
            answers.append(http.post(path))

    askers = [threading.Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert [one.status_code for one in answers] == [202] * 4
    assert len({one.json()["messageId"] for one in answers}) == 1
    assert sorted(one.json()["duplicate"] for one in answers) == [False, True, True, True]
    again = answers[0].json()["messageId"]
    done = hub.http.get(f"/messages/{again}", params={"wait": seconds(30)}).json()
    assert (done["state"], done["reply"]["text"]) == ("done", "here now")
    entries = [one for one in listed(hub, thread) if one["type"] == "text"]
    assert [(one["source"], one["text"]) for one in entries][2:] == [("user", "a flaky thing"), ("agent", "here now")]
    assert entries[1]["metadata"]["retried_as"] == again
    assert hub.http.post(path).json()["messageId"] == again, "also later"
    told = hub.http.get(f"/messages/{error['replyTo']}/events").json()["events"]
    assert [one["data"]["what"] for one in told if one["data"].get("what")] == ["retried"]


@pytest.mark.req("THR-05")
def test_the_thread_tells_of_every_wait_while_a_model_call_is_tried_again(
    hub: HubProcess, failing: ScriptedServer
) -> None:
    _thread, error = fail(hub, "countdown")
    events = hub.http.get(f"/messages/{error['replyTo']}/events").json()["events"]
    waits = [one["data"] for one in events if one["type"] == "notice" and "retryAt" in one["data"]]
    assert [(one["attempt"], one["attempts"]) for one in waits] == [(number, 6) for number in range(2, 7)]
    assert all(one["seconds"] > 0 for one in waits)
    (ended,) = [one["data"] for one in events if one["type"] == "error"]
    assert (ended["retryable"], ended["attempts"]) == (True, 6)


@pytest.mark.req("THR-03", "THR-05")
def test_an_error_that_no_second_try_can_help_is_not_tried_again(hub: HubProcess, model: ScriptedServer) -> None:
    model.rules(Rule(match="flaky", reply=Reply.failing(401, "bad key")))
    try:
        thread, error = fail(hub, "refused")
    finally:
        model.rules()
    assert (error["metadata"]["retryable"], error["metadata"]["attempts"]) == (False, 1)
    refused = hub.http.post(f"/threads/{thread}/messages/{error['id']}/retry")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")
    assert len(listed(hub, thread)) == 2


@pytest.mark.req("THR-03")
def test_an_error_that_was_put_aside_stays_and_is_not_tried_again(hub: HubProcess, failing: ScriptedServer) -> None:
    thread, error = fail(hub, "dismissed")
    path = f"/threads/{thread}/messages/{error['id']}"
    for _ in range(2):
        assert hub.http.post(f"{path}/dismiss").json()["metadata"]["dismissed"] is True
    assert hub.http.post(f"{path}/retry").status_code == 409
    assert [one["source"] for one in listed(hub, thread)] == ["user", "error"]
    told = hub.http.get(f"/messages/{error['replyTo']}/events").json()["events"]
    assert [one["data"]["what"] for one in told if one["data"].get("what")] == ["dismissed"]


@pytest.mark.req("THR-03")
def test_only_errors_of_this_thread_are_tried_again_or_put_aside(hub: HubProcess, failing: ScriptedServer) -> None:
    thread, error = fail(hub, "mine")
    other = hub.say("hello", chatId="not-mine")
    for what in ("retry", "dismiss"):
        place = f"/threads/{other['threadId']}/messages/{error['id']}/{what}"
        assert hub.http.post(place).status_code == 404
        assert hub.http.post(f"/threads/{thread}/messages/msg_unknown/{what}").status_code == 404
        answer = other["reply"]["id"]  # type: ignore[index]
        assert hub.http.post(f"/threads/{other['threadId']}/messages/{answer}/{what}").status_code == 409


@pytest.mark.req("THR-02")
def test_what_was_said_is_found_with_the_place_where_it_stands(hub: HubProcess) -> None:
    hub.say(json.dumps({"say": "Das Klavier in Köln ist gestimmt."}), chatId="found")
    found = hub.http.get("/threads/search", params={"q": "KÖLN klavier", "limit": 1}).json()["messages"]
    (hit,) = found
    assert "Klavier in Köln" in hit["excerpt"]
    (there,) = listed(hub, hit["threadId"], after=hit["position"] - 1, limit=1)
    assert (there["id"], there["source"]) == (hit["id"], "agent")
    assert hub.http.get("/threads/search", params={"q": "xylophone-nowhere"}).json() == {
        "messages": [], "moreBefore": None,
    }  # fmt: skip
    for bad in ({"q": ""}, {"q": " "}, {"q": "x" * 201}, {"q": "x", "limit": 101}, {}):
        assert hub.http.get("/threads/search", params=bad).status_code == 422, bad


@pytest.mark.req("THR-03")
def test_an_error_of_a_conversation_that_has_ended_is_not_tried_again(hub: HubProcess, failing: ScriptedServer) -> None:
    thread, error = fail(hub, "ended")
    hub.say("/new", chatId="ended")
    refused = hub.http.post(f"/threads/{thread}/messages/{error['id']}/retry")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")


@pytest.mark.req("THR-01")
@pytest.mark.incident("I-27")
def test_cells_are_there_while_the_turn_runs_and_after_it_was_stopped(hub: HubProcess, model: ScriptedServer) -> None:
    text = plan_text([("get_status", {})], say="seen")
    model.rules(Rule(results=1, reply=Reply(hang=True)))
    try:
        asked = hub.http.post("/message", json={"text": text, "chatId": "stopped"}).json()

        def cells() -> list[dict]:
            return [one["metadata"] for one in listed(hub, asked["threadId"]) if one["type"] == "tool"]

        wait_for(lambda: [one["status"] for one in cells()] == ["success"], "the call to be over while the turn runs")
        hub.http.post(f"/messages/{asked['messageId']}/cancel", params={"wait": seconds(30)})
        assert [one["status"] for one in cells()] == ["success"]
        assert listed(hub, asked["threadId"])[-1]["source"] == "error"
    finally:
        model.rules()


@pytest.mark.req("THR-01")
async def test_a_call_is_in_progress_until_its_turn_is_over_also_without_a_result(database: Database) -> None:
    said = InboundMessage(channel="api", chat_id="main", sender_id=OWNER, text="Look it up")

    def begin(conn: Connection) -> Thread:
        thread = find_or_create_thread(conn, channel="api", chat_id="main", user_id=OWNER, agent_id="annabelle")
        messages.queue_message(conn, thread, said, messages.QueueLimits())
        call = TurnEvent(message_id=said.id, key="call", type="tool_start", data={"call_id": "c1", "name": "look"})
        append_events(conn, thread.id, [call])
        return thread

    thread = await database.write(begin)

    async def read() -> list[CellStatus]:
        page = await database.read(lambda conn: load_thread_page(conn, thread.id, OWNER, PageRange()))
        return [cell.status for entry in page for cell in entry.cells]

    assert await read() == ["in_progress"]
    await database.write(lambda conn: messages.set_message_state(conn, said.id, "failed"))
    assert await read() == ["failure"]


@pytest.mark.req("THR-01", "POL-03")
@pytest.mark.parametrize(("verdict", "shown"), [("approve", ["success"]), ("deny", ["failure"])])
def test_a_call_that_was_asked_about_is_shown_once_when_it_was_answered(
    hub: HubProcess, verdict: str, shown: list[str]
) -> None:
    (hub.home.workspace / "old.txt").write_text("old")
    text = plan_text([("filer_delete_file", {"path": "old.txt"})], say="over")
    thread_id = hub.say(f"What is there? {text}", chatId=f"asked-{verdict}")["threadId"]
    (waiting,) = [one["metadata"] for one in listed(hub, thread_id) if one["type"] == "tool"]
    assert waiting["status"] == "in_progress"
    answered = hub.http.post(f"/approvals/{waiting['approval_id']}", json={"verdict": verdict}).json()
    ended = hub.http.get(f"/messages/{answered['messageId']}", params={"wait": seconds(30)}).json()
    assert ended["state"] == "done"
    cells = [one["metadata"] for one in listed(hub, thread_id) if one["type"] == "tool"]
    assert [one["status"] for one in cells] == shown
    assert (hub.home.workspace / "old.txt").exists() is (verdict == "deny")
