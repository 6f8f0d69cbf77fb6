"""`/goals` in any chat: what there is, and words to a goal whose answer comes back there."""

from __future__ import annotations

import asyncio

import pytest

from annabelle.core.messages import OWNER
from annabelle.core.tools import JsonObject
from annabelle.store import feed, goals
from annabelle.store.feed import NewFeedItem
from annabelle.store.goals import NewNote
from hub.commands.conftest import Speaker, let_in
from support.timing import seconds


async def make(owner: Speaker, title: str, **more: object) -> str:
    made = await owner.http.post("/goals", json={"title": title, "description": "x", "tools": [], **more})
    assert made.status_code == 201, made.text
    return made.json()["goalId"]


async def thread_lines(owner: Speaker, thread_id: object, most: int = 1) -> list[JsonObject]:
    """What stands in a thread, once there are so many lines."""
    async with asyncio.timeout(seconds(20)):
        while True:
            found = (await owner.http.get(f"/threads/{thread_id}/messages")).json()["messages"]
            if len(found) >= most:
                return found
            await asyncio.sleep(0.01)


@pytest.mark.req("CMD-01", "AGE-02")
async def test_goals_are_listed_and_one_is_shown(owner: Speaker) -> None:
    assert "no goals yet" in await owner.say("/goals")
    await make(owner, "Learn the piano", checkIn={"time": "08:30"}, learnings=["One.", "Two."])
    old, garden = await make(owner, "Old"), await make(owner, "Garden")
    await owner.http.post(f"/goals/{old}/archive")
    listed = (await owner.say("/goals")).splitlines()
    assert listed[0].startswith("1. Learn the piano: waiting, next check-in ")
    assert listed[1].startswith("3. Garden: waiting")
    assert listed[2:] == ["1 is archived."]
    note = NewNote(user_id=OWNER, goal_id=garden, title="Soil is acid", content="y", written_by="user")
    await owner.house.hub.storage.database.write(lambda conn: goals.add_note(conn, note))
    assert "Soil is acid" in await owner.say("/goals 3")
    assert "2 learnings." in await owner.say("/goals learn the piano")
    assert "no goal" in (await owner.say("/goals nothing like it")).lower()
    assert owner.asked == []


@pytest.mark.req("CMD-01", "AGE-01")
async def test_words_after_a_number_are_said_to_that_goal_and_answered_here(owner: Speaker) -> None:
    goal = await make(owner, "Learn the piano")
    said = await owner.post("/goals 1 How do we\n  stand?")
    here = await thread_lines(owner, said["threadId"], 3)
    assert [line["text"] for line in here][1:] == [
        "Said to “Learn the piano”. Its answer comes here.", "You said: How do we\n  stand?",
    ]  # fmt: skip
    own = (await owner.http.get(f"/goals/{goal}")).json()
    assert own["threadId"] != said["threadId"]
    there = await thread_lines(owner, own["threadId"], 2)
    assert [(line["source"], line["text"]) for line in there] == [
        ("user", "How do we\n  stand?"), ("agent", "You said: How do we\n  stand?"),
    ]  # fmt: skip


@pytest.mark.req("CMD-01", "DUR-01")
async def test_words_to_a_goal_whose_command_comes_again_after_a_kill_are_said_once(
    owner: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    goal = await make(owner, "Learn the piano")
    command = {"text": "/goals 1 Hello.", "externalId": "once"}
    with monkeypatch.context() as killed:
        killed.setattr(owner.house.hub.conversations.gate, "_store", None)  # its words were said, and it was not stored
        assert (await owner.http.post("/message", json={"chatId": owner.chat, **command})).status_code == 500
    said = await owner.post(**command)
    await thread_lines(owner, said["threadId"], 3)
    there = await thread_lines(owner, (await owner.http.get(f"/goals/{goal}")).json()["threadId"], 2)
    assert [line["text"] for line in there] == ["Hello.", "You said: Hello."]


@pytest.mark.req("CMD-01")
async def test_in_the_chat_of_the_goal_itself_it_is_answered_once(owner: Speaker) -> None:
    goal = await make(owner, "Learn the piano")
    said = await owner.post("/goals 1 Hello.", channel="goal", chatId=goal)
    lines = await thread_lines(owner, said["threadId"], 4)
    await owner.post("/status", channel="goal", chatId=goal)
    lines = await thread_lines(owner, said["threadId"], 6)
    assert [line["text"] for line in lines].count("You said: Hello.") == 1
    assert (await owner.http.get(f"/goals/{goal}")).json()["state"] == "waiting"


@pytest.mark.req("CMD-02", "SEC-06", "TRU-03")
async def test_secrets_are_masked_and_rules_hold_in_what_is_said_to_a_goal(owner: Speaker) -> None:
    goal = await make(owner, "Learn the piano")
    secret = "sk-proj-Zx81kQ0vTn5Yp2Lw7Rb9Hc4Md6Fg3Js8"
    owner.house.hub.base.redact.learn([secret])
    said = await owner.post(f"/goals 1 Always ask before deleting mail. The key is {secret}")
    await thread_lines(owner, said["threadId"], 3)
    thread = (await owner.http.get(f"/goals/{goal}")).json()["threadId"]
    for one in (thread, said["threadId"]):
        assert secret not in (await owner.http.get(f"/threads/{one}/messages")).text
    assert "delet" in await owner.say("/rules")


@pytest.mark.req("CMD-01", "AGE-09")
async def test_the_feed_is_shown_with_its_newest_items(owner: Speaker) -> None:
    assert "nothing in your feed" in await owner.say("/goals feed")
    items = [NewFeedItem(user_id=OWNER, kind="discovery", title=f"Item {n}", content=f"Words {n}") for n in range(9)]
    await owner.house.hub.storage.database.write(lambda conn: [feed.add_feed_item(conn, one) for one in items])
    shown = await owner.say("/goals feed")
    assert [f"Item {n}" in shown for n in (8, 4, 3)] == [True, True, False]


@pytest.mark.incident("I-30")
async def test_nobody_speaks_to_or_sees_a_goal_of_somebody_else(owner: Speaker) -> None:
    goal = await make(owner, "Learn the piano")
    ada = await let_in(owner.house, "ada")
    for words in ("/goals", "/goals 1", f"/goals {goal}", "/goals piano", "/goals 1 Hello."):
        assert "Learn" not in await ada.say(words)
    assert (await owner.http.get(f"/goals/{goal}")).json()["threadId"] is None
