"""Goals, tasks and the feed over HTTP: made, changed and followed by the person they belong to (THR-03)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import httpx2 as httpx
import pytest

from annabelle.core.contract import ModelCall, TokenUsage, TurnBrief
from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.core.tools import CallContext, JsonObject
from annabelle.hub.app import make_app
from annabelle.hub.security.users_file import add_user
from annabelle.store import feed, ledger
from annabelle.store.feed import NewFeedItem
from hub.approvals.house import client
from hub.skills.house import BEGIN, House, open_house
from support.timing import seconds
from support.virtual_clock import VirtualClock

PIANO: JsonObject = {
    "title": "  Learn the\npiano ",
    "description": "Play a prelude by summer.",
    "instructions": "Practise in the evening.",
    "tools": ["look_around"],
    "learnings": ["I have a keyboard."],
    "checkIn": {"frequency": "weekdays", "time": "08:30", "intent": "Ask how practice went."},
}
TEACHERS: tuple[str, JsonObject] = ("create_task", {"title": "Teachers", "instructions": "Find three."})


@pytest.fixture
async def house(home: Home) -> AsyncIterator[House]:
    async with open_house(home, VirtualClock(BEGIN)) as made:
        yield made


@pytest.fixture
async def ada(house: House, home: Home) -> AsyncIterator[httpx.AsyncClient]:
    async with client(house.machine.hub, add_user(home.users_file, "ada")) as made:
        yield made


async def make(who: httpx.AsyncClient, **more: object) -> JsonObject:
    answer = await who.post("/goals", json=PIANO | more)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def post(who: httpx.AsyncClient, path: str, body: JsonObject | None = None, expected: int = 200) -> JsonObject:
    answer = await who.post(path, json=body or {})
    assert answer.status_code == expected, answer.text
    return answer.json()


async def get(who: httpx.AsyncClient, path: str, **query: str | int | bool) -> JsonObject:
    answer = await who.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def plays(*calls: tuple[str, JsonObject], say: str = "done") -> Callable[[TurnBrief], JsonObject]:
    """What a goal does when it is spoken to; everybody else only talks."""
    made = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return lambda brief: {"calls": made if brief.channel == "goal" else [], "say": say}


async def eventually(who: httpx.AsyncClient, path: str, met: Callable[[JsonObject], bool]) -> JsonObject:
    async with asyncio.timeout(seconds(30)):
        while not met(found := await get(who, path)):  # noqa: ASYNC110  a row changes
            await asyncio.sleep(0.01)
    return found


@pytest.mark.req("THR-03", "AGE-12")
async def test_a_goal_that_a_person_makes_is_there_at_once_with_all_they_gave(house: House) -> None:
    made = await make(house.owner)
    assert (made["title"], made["state"], made["number"]) == ("Learn the piano", "waiting", 1)
    assert made["tools"] == ["look_around"]
    assert [one["content"] for one in made["learnings"]] == ["I have a keyboard."]
    recurring = next(one for one in made["checkIns"] if one["sort"] == "recurring")
    assert recurring["trigger"]["schedule"] == "30 8 * * 1-5"
    assert (await make(house.owner))["goalId"] == made["goalId"]
    for named in (made["goalId"], "1", "piano"):
        assert (await get(house.owner, f"/goals/{named}"))["goalId"] == made["goalId"]
    assert (await house.owner.get("/approvals")).json()["approvals"] == []


@pytest.mark.req("THR-03")
@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": ["no_such_tool"]},
        {"tools": ["memory_store_skill"]},
        {"title": " \n"},
        {"title": "x" * 201},
        {"checkIn": {"time": "25:00"}},
        {"checkIn": {"frequency": "hourly"}},
        {"learnings": [" "]},
        {"owner": "ada"},
    ],
)
async def test_a_goal_that_cannot_be_is_refused_with_the_field(house: House, wrong: JsonObject) -> None:
    refused = await house.owner.post("/goals", json=PIANO | wrong)
    assert refused.status_code == 422, refused.text
    assert refused.json()["error"]["field"].split(".")[0] == next(iter(wrong))
    assert "item" not in refused.json()["error"]["message"]
    assert (await get(house.owner, "/goals", archived=True))["goals"] == []


@pytest.mark.req("THR-03")
async def test_a_goal_is_changed_ordered_put_away_taken_up_and_deleted(house: House) -> None:
    piano, garden = await make(house.owner), await make(house.owner, title="Garden", learnings=[])
    changed = await post(house.owner, "/goals/piano/update", {"description": "Two preludes.", "tools": []})
    assert (changed["description"], changed["tools"], changed["title"]) == ("Two preludes.", [], "Learn the piano")
    refused = await house.owner.post("/goals/piano/update", json={"tools": ["memory_store_skill"]})
    assert refused.status_code == 422
    ordered = await post(house.owner, "/goals/reorder", {"goals": [garden["goalId"]]})
    assert [one["title"] for one in ordered["goals"]] == ["Garden", "Learn the piano"]
    assert (await post(house.owner, "/goals/piano/archive"))["checkIns"] == []
    assert [one["title"] for one in (await get(house.owner, "/goals"))["goals"]] == ["Garden"]
    assert len((await get(house.owner, "/goals", archived=True))["goals"]) == 2
    assert (await house.owner.post("/goals/piano/messages", json={"text": "hello"})).status_code == 409
    reopened = await post(house.owner, "/goals/piano/reopen")
    assert {one["sort"] for one in reopened["checkIns"]} == {"recurring", "heartbeat"}
    await post(house.owner, f"/goals/{piano['goalId']}/delete")
    assert (await house.owner.get(f"/goals/{piano['goalId']}")).status_code == 404


@pytest.mark.req("THR-03", "AGE-08")
async def test_check_ins_are_arranged_and_cleared(house: House) -> None:
    await make(house.owner, checkIn=None)
    body: JsonObject = {"frequency": "weekly", "day": "friday", "time": "17:00", "intent": "Sum up."}
    arranged = await post(house.owner, "/goals/1/check-in", body)
    recurring = next(one for one in arranged["checkIns"] if one["sort"] == "recurring")
    assert (recurring["trigger"]["schedule"], recurring["intent"]) == ("0 17 * * 5", "Sum up.")
    followed = await post(house.owner, "/goals/1/check-in", {"action": "follow_up", "delayHours": 2})
    due = next(one["nextDue"] for one in followed["checkIns"] if one["sort"] == "follow_up")
    assert due.startswith((BEGIN + timedelta(hours=2)).isoformat()[:16])
    assert (await get(house.owner, "/goals"))["goals"][0]["nextCheckIn"] == due
    cleared = await post(house.owner, "/goals/1/check-in", {"action": "clear"})
    assert {one["sort"] for one in cleared["checkIns"]} == {"heartbeat"}


@pytest.mark.req("THR-03", "AGE-05")
async def test_learnings_are_added_reworded_and_removed_and_fifty_are_the_most(house: House) -> None:
    await make(house.owner, learnings=[])
    one = await post(house.owner, "/goals/1/learnings", {"content": "Morning is best."}, 201)
    path = f"/goals/1/learnings/{one['learningId']}"
    changed = await post(house.owner, f"{path}/update", {"content": "Evening is best."})
    assert [line["content"] for line in changed["learnings"]] == ["Evening is best."]
    assert (await post(house.owner, f"{path}/remove"))["learnings"] == []
    assert (await house.owner.post(f"{path}/remove")).status_code == 404
    for number in range(50):
        await post(house.owner, "/goals/1/learnings", {"content": f"Learning {number}."}, 201)
    full = await house.owner.post("/goals/1/learnings", json={"content": "One too many."})
    assert full.status_code == 409
    assert len((await get(house.owner, "/goals/1/learnings"))["learnings"]) == 50


@pytest.mark.req("THR-03", "AGE-01")
async def test_what_is_said_to_a_goal_is_answered_by_it_and_a_reset_keeps_what_it_knows(house: House) -> None:
    made = await make(house.owner)
    house.thinker.plan = plays(("create_note", {"title": "Scales", "content": "Ten minutes a day."}), say="Noted.")
    answer = await house.owner.post(
        "/goals/piano/messages", params={"wait": seconds(20)}, json={"text": "What first?", "externalId": "a"}
    )
    assert (answer.status_code, answer.json()["reply"]["text"]) == (200, "Noted.")
    assert "required_tools" in house.thinker.briefs[-1].model_dump()
    again = await house.owner.post("/goals/piano/messages", json={"text": "What first?", "externalId": "a"})
    assert again.json()["duplicate"]
    found = await get(house.owner, "/goals/piano")
    assert (found["notes"], found["threadId"], found["state"]) == (1, answer.json()["threadId"], "waiting")
    await post(house.owner, "/goals/piano/reset")
    assert [one.thread_id for one in house.thinker.cleared] == [found["threadId"]]
    after = await get(house.owner, "/goals/piano")
    assert (after["notes"], after["learnings"], after["goalId"]) == (1, made["learnings"], made["goalId"])


@pytest.mark.req("SEC-06")
async def test_a_secret_that_was_pasted_is_masked_before_a_goal_is_stored(house: House) -> None:
    secret = "sk-proj-Zx81kQ0vTn5Yp2Lw7Rb9Hc4Md6Fg3Js8"
    house.machine.hub.base.redact.learn([secret])
    made = await make(house.owner, description=f"The key is {secret}.", learnings=[f"Key {secret}"])
    assert secret not in str(made)
    await post(house.owner, "/goals/1/update", {"instructions": f"Use {secret}"})
    await post(house.owner, "/goals/1/check-in", {"intent": f"Use {secret}"})
    await post(house.owner, "/goals/1/messages", {"text": f"Use {secret}"}, 202)
    thread = (await eventually(house.owner, "/goals/1", lambda goal: goal["threadId"] is not None))["threadId"]
    for path in ("/goals/1", f"/threads/{thread}/messages"):
        assert secret not in (await house.owner.get(path)).text


@pytest.mark.req("THR-03", "AGE-03")
async def test_a_task_of_a_goal_is_listed_and_shown_with_what_it_found(house: House) -> None:
    made = await make(house.owner)
    house.thinker.plan = plays(TEACHERS, say="Found three.")
    await house.owner.post("/goals/1/messages", params={"wait": seconds(20)}, json={"text": "Find teachers."})
    (task,) = (await get(house.owner, "/tasks", goal="piano"))["tasks"]
    done = await eventually(house.owner, f"/tasks/{task['taskId']}", lambda one: one["state"] == "completed")
    assert (done["kind"], done["goalId"], done["result"]) == ("goal", made["goalId"], "Found three.")
    assert (done["note"]["title"], done["note"]["content"]) == ("Teachers", "Found three.")
    assert (done["instructions"], done["running"]) == ("Find three.", None)
    assert (await house.owner.get(f"/threads/{done['threadId']}/messages")).status_code == 200
    assert (await house.owner.post(f"/tasks/{task['taskId']}/retry")).status_code == 409
    assert (await house.owner.get("/tasks", params={"goal": "no such"})).status_code == 404


@pytest.mark.req("THR-03", "THR-05", "AGE-13")
async def test_a_task_that_failed_says_when_it_is_tried_again_is_cancelled_and_tried_now(house: House) -> None:
    await make(house.owner)
    house.thinker.plan = plays(TEACHERS)
    turn = house.thinker._turn

    async def fail_tasks(brief: TurnBrief) -> object:
        house.thinker.fails = brief.channel == "task"
        return await turn(brief)

    house.thinker._turn = fail_tasks  # type: ignore[method-assign, assignment]
    await house.owner.post("/goals/1/messages", params={"wait": seconds(20)}, json={"text": "Find teachers."})
    (task,) = (await get(house.owner, "/tasks"))["tasks"]
    path = f"/tasks/{task['taskId']}"
    paused = await eventually(house.owner, path, lambda one: one["state"] == "paused")
    assert paused["nextTryAt"] is not None
    assert "No model answers" in paused["result"]
    cancelled = await post(house.owner, f"{path}/cancel")
    assert (cancelled["state"], cancelled["nextTryAt"]) == ("cancelled", None)
    assert await post(house.owner, f"{path}/cancel") == cancelled
    house.thinker._turn = turn  # type: ignore[method-assign]
    house.thinker.fails = False
    assert (await post(house.owner, f"{path}/retry"))["state"] in ("active", "completed")
    await eventually(house.owner, path, lambda one: one["state"] == "completed")


@pytest.mark.req("AGE-06", "THR-03")
async def test_a_turn_that_runs_is_shown_as_the_lock_of_its_goal_and_agent(house: House) -> None:
    await make(house.owner)
    goes_on, turn = asyncio.Event(), house.thinker._turn

    async def wait(brief: TurnBrief) -> object:
        await goes_on.wait()
        return await turn(brief)

    house.thinker._turn = wait  # type: ignore[method-assign, assignment]
    assert (await get(house.owner, "/goals/1"))["running"] is None
    said = await post(house.owner, "/goals/1/messages", {"text": "Hello."}, 202)
    found = await eventually(house.owner, "/goals/1", lambda one: one["running"] is not None)
    assert (found["running"]["messageId"], found["state"]) == (said["messageId"], "working")
    assert found["running"]["since"] >= found["createdAt"]
    assert found["running"]["owner"]
    second = await post(house.owner, "/goals/1/messages", {"text": "And now?"}, 202)
    assert second["state"] == "queued"
    (lock,) = (await get(house.owner, "/agents/annabelle"))["running"]
    assert lock == found["running"]
    goes_on.set()
    await eventually(house.owner, "/goals/1", lambda one: one["running"] is None and one["state"] == "waiting")
    assert (await get(house.owner, "/agents/annabelle"))["running"] == []


@pytest.mark.req("THR-03", "AGE-09")
async def test_the_feed_is_paged_without_loss_and_its_times_are_set(house: House, ada: httpx.AsyncClient) -> None:
    assert (await house.owner.post("/feed/schedule", json={"morning": "07:00"})).status_code == 409
    await make(house.owner)
    assert await get(house.owner, "/feed/schedule") == {
        "morning": "08:00", "afternoon": "13:00", "evening": "19:00", "timeZone": "Europe/Berlin",
    }  # fmt: skip
    changed = await post(house.owner, "/feed/schedule", {"morning": "07:15", "evening": None})
    assert (changed["morning"], changed["afternoon"], changed["evening"]) == ("07:15", "13:00", None)
    items = [NewFeedItem(user_id=OWNER, kind="discovery", title=f"Item {n}", content="x") for n in range(7)]
    foreign = NewFeedItem(user_id="ada", kind="reflection", title="Ada's", content="x", read_from=["web"])
    database = house.machine.hub.storage.database
    await database.write(lambda conn: [feed.add_feed_item(conn, one) for one in (*items, foreign)])
    assert [one["title"] for one in (await get(house.owner, "/feed", limit=2))["items"]] == ["Item 6", "Item 5"]
    seen: list[str] = []
    page: JsonObject = {"before": None}
    while not seen or page["before"] is not None:
        query = {} if page["before"] is None else {"before": page["before"]}
        page = await get(house.owner, "/feed/history", limit=3, **query)
        seen += [one["title"] for one in page["items"]]
    assert seen == [f"Item {n}" for n in reversed(range(7))]
    (theirs,) = (await get(ada, "/feed"))["items"]
    assert theirs["trust"] == "untrusted"
    assert (await house.owner.get("/feed/history", params={"before": theirs["itemId"]})).status_code == 404


@pytest.mark.req("THR-03", "AGE-04")
async def test_the_agent_of_a_person_is_shown_with_its_thread_and_feed(house: House) -> None:
    assert (await get(house.owner, "/user-agent"))["threadId"] is None
    await make(house.owner)
    body = {"text": "How do my goals stand?", "channel": "user_agent", "chatId": OWNER}
    said = (await house.owner.post("/message", params={"wait": seconds(20)}, json=body)).json()
    shown = await get(house.owner, "/user-agent")
    assert (shown["threadId"], shown["running"], shown["feed"]["morning"]) == (said["threadId"], None, "08:00")


@pytest.mark.req("CST-05")
async def test_costs_are_added_up_per_goal_with_those_of_its_tasks(house: House) -> None:
    made = await make(house.owner)
    house.thinker.plan = plays(TEACHERS)
    said = await house.owner.post("/goals/1/messages", params={"wait": seconds(20)}, json={"text": "Go."})
    (task,) = (await get(house.owner, "/tasks"))["tasks"]
    await eventually(house.owner, f"/tasks/{task['taskId']}", lambda one: one["state"] == "completed")
    chat = await house.owner.post("/message", params={"wait": seconds(20)}, json={"text": "hello"})
    spent = {said.json()["messageId"]: 0.5, f"{task['taskId']}_0": 0.25, chat.json()["messageId"]: 4.0}

    def book(conn: object) -> None:
        for message_id, cost in spent.items():
            usage = TokenUsage(input_tokens=10, output_tokens=1, cost_usd=cost)
            call = ModelCall(
                call_id=f"{message_id}:1", agent_id="annabelle", user_id=OWNER, message_id=message_id, purpose="turn",
                trace_id=None, provider="scripted", model="m", duration_ms=1, outcome="ok", usage=usage,
            )  # fmt: skip
            ledger.settle_call(conn, call)  # type: ignore[arg-type]

    await house.machine.hub.storage.database.write(book)
    totals = {one["key"]: one for one in (await get(house.owner, "/costs", by="goal"))["totals"]}
    assert {key: one["costUsd"] for key, one in totals.items()} == {made["goalId"]: 0.75, "": 4.0}
    assert (totals[made["goalId"]]["calls"], totals[made["goalId"]]["title"]) == (2, "Learn the piano")
    shown = await get(house.owner, "/goals/1")
    assert (shown["calls"], shown["costUsd"]) == (2, 0.75)


@pytest.mark.req("THR-03")
@pytest.mark.incident("I-10", "I-30")
async def test_nobody_reaches_what_belongs_to_somebody_else_on_any_route(house: House, ada: httpx.AsyncClient) -> None:
    made = await make(house.owner)
    house.thinker.plan = plays(TEACHERS)
    said = await house.owner.post("/goals/1/messages", params={"wait": seconds(20)}, json={"text": "Go."})
    (task,) = (await get(house.owner, "/tasks"))["tasks"]
    done = await eventually(house.owner, f"/tasks/{task['taskId']}", lambda one: one["state"] == "completed")
    item = await house.machine.hub.storage.database.write(
        lambda conn: feed.add_feed_item(
            conn, NewFeedItem(user_id=OWNER, kind="discovery", title="Secret find", content="x")
        )
    )
    assert item is not None
    ids = {
        "goal": made["goalId"], "task": task["taskId"], "learning": made["learnings"][0]["learningId"],
        "message": said.json()["messageId"], "thread": done["threadId"], "item": item.id,
        "note": done["note"]["noteId"],
    }  # fmt: skip
    own = {"named": ids["goal"], "goal_id": ids["goal"], "task_id": ids["task"], "learning_id": ids["learning"]}
    own |= {"message_id": ids["message"], "thread_id": ids["thread"], "note_id": ids["note"]}
    mine = {"title": "Mine", "description": "x", "content": "x", "text": "x", "goal": "Mine"}
    before = [await get(house.owner, path) for path in ("/goals/1", f"/tasks/{ids['task']}", "/feed")]
    document = make_app(house.machine.hub)._app.openapi()  # type: ignore[attr-defined]
    hidden = (*ids.values(), "prelude", "Secret find", "Teachers")
    walked = 0
    for path, methods in document["paths"].items():
        if path == "/events":
            continue  # a stream without an end, of the caller's own events
        filled = path.format_map({name: own.get(name, "nothing") for name in _parameters(path)})
        for method, operation in methods.items():
            answers = set[int]()
            for body in _bodies(operation, mine):
                answer = await ada.request(method, filled, json=body)
                walked += 1
                assert str(answer.status_code) in operation["responses"], (method, path, answer.text)
                answered = answer.status_code not in (403, 404, 422)  # which repeat what was asked for
                assert not (answered and any(one in answer.text for one in hidden)), (method, path, answer.text)
                answers.add(answer.status_code)
            if set(_parameters(path)) & set(own):  # a body that does not fit may be refused before
                assert answers - {422} <= {403, 404}, (method, path, answers)
                assert answers & {403, 404}, (method, path, answers)
    assert walked > 50
    for query in ({"goal": ids["goal"]}, {"before": ids["item"]}):
        path = "/tasks" if "goal" in query else "/feed/history"
        assert (await ada.get(path, params=query)).status_code == 404
    assert (await ada.post("/goals/reorder", json={"goals": [ids["goal"]]})).status_code == 404
    body = {"text": "Do this for me.", "channel": "goal", "chatId": ids["goal"]}
    assert (await ada.post("/message", json=body)).status_code == 404
    after = [await get(house.owner, path) for path in ("/goals/1", f"/tasks/{ids['task']}", "/feed")]
    assert after == before


@pytest.mark.req("THR-03")
async def test_a_person_beside_the_owner_has_goals_of_their_own_that_work(house: House, ada: httpx.AsyncClient) -> None:
    assert (await ada.post("/goals", json=PIANO)).status_code == 422  # look_around is not for everybody
    await make(ada, tools=[])
    house.thinker.plan = plays(("create_note", {"title": "Scales", "content": "Daily."}), say="Noted.")
    answer = await ada.post("/goals/1/messages", params={"wait": seconds(20)}, json={"text": "What first?"})
    assert answer.json()["reply"]["text"] == "Noted."
    assert (await get(ada, "/goals/1"))["notes"] == 1
    assert (await get(house.owner, "/goals"))["goals"] == []
    house.machine.hub.tool_access.check_user(CallContext(caller="agent", user_id="ada"), "create_goal")


def _parameters(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def _bodies(operation: JsonObject, mine: JsonObject) -> list[JsonObject]:
    """An empty one, and one with what the body asks for."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    wanted = [*schema.get("required", []), *(name for name in mine if name in schema.get("properties", {}))]
    return [{}, {name: mine.get(name, "x") for name in wanted}]
