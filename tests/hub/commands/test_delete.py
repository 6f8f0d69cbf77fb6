"""/delete: asks first, then takes what was said out of the history, for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from sqlalchemy import Connection

from annabelle.core.messages import OWNER, now
from annabelle.hub.commands.delete import DeleteCommand
from annabelle.store import tool_calls
from annabelle.store.message_removal import REMOVED
from annabelle.store.messages import StoredMessage
from annabelle.store.tool_calls import SeenToolResult
from hub.approvals.house import House
from hub.commands.conftest import Speaker, let_in

SECRET = "The code is tulip."


def set_time(conn: Connection, message_id: str, at: datetime) -> None:
    """As if the message and its answer were from then."""
    moment = at.isoformat(timespec="microseconds")
    conn.exec_driver_sql("UPDATE messages SET created_at = ? WHERE ? IN (id, reply_to)", (moment, message_id))


async def texts(house: House, thread_id: object) -> list[str]:
    return [text for source, text in await house.said(thread_id) if source == "user"]


@pytest.mark.req("CMD-04")
async def test_it_says_what_would_be_deleted_and_does_nothing_before_it_is_confirmed(
    house: House, owner: Speaker
) -> None:
    said = await owner.post(SECRET)
    reply = await owner.reply("/delete 2h")
    assert reply["text"] == (
        "This would delete 2 messages from the history of this chat, for good. To do it: /delete 2h confirm"
    )
    buttons = reply["metadata"]["buttons"]  # type: ignore[index]
    assert buttons == [{"label": "Delete 2 messages", "command": "/delete 2h confirm"}]
    assert await texts(house, said["threadId"]) == [SECRET]
    assert house.thinker.cleared == []
    assert (await owner.say(buttons[0]["command"])).startswith("Deleted 2 messages from the history.")
    assert await texts(house, said["threadId"]) == [REMOVED]
    cleared = house.thinker.cleared[0]
    assert (cleared.thread_id, cleared.removed) == (said["threadId"], (said["messageId"],))
    assert SECRET not in str(await house.events(said["messageId"]))


@pytest.mark.req("CMD-04")
@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        ("today", ["yesterday", "older"]),
        ("yesterday", ["now", "older"]),
        ("week", ["older"]),
        ("30h", ["older"]),
        ("1", ["yesterday", "older"]),
        ("2", ["yesterday", "older"]),
        ("3", ["older"]),
    ],
)
async def test_only_the_range_is_deleted_in_whole_turns(
    house: House, owner: Speaker, monkeypatch: pytest.MonkeyPatch, wanted: str, left: list[str]
) -> None:
    noon = now().replace(hour=12)
    monkeypatch.setattr("annabelle.hub.base.SystemClock.now", lambda _self: noon)
    for text, at in (("older", timedelta(days=7)), ("yesterday", timedelta(hours=24)), ("now", timedelta(minutes=1))):
        said = str((await owner.post(text))["messageId"])
        await house.hub.storage.database.write(lambda conn, one=said, ago=at: set_time(conn, one, noon - ago))
    await owner.say("/status")
    await owner.say(f"/delete {wanted}")
    await owner.say(f"/delete {wanted} confirm")
    threads = (await owner.http.get("/threads")).json()["threads"]
    assert [text for text in await texts(house, threads[0]["id"]) if text != REMOVED] == left[::-1]


@pytest.mark.req("CMD-04", "TRU-03")
@pytest.mark.incident("I-20")
async def test_what_was_deleted_is_still_known_as_seen_and_as_foreign(house: House, owner: Speaker) -> None:
    said = await owner.post("What does the page say?", externalId="update-3")
    seen = SeenToolResult("searcher_web_fetch", OWNER, "annabelle", str(said["messageId"]))
    await house.hub.storage.database.write(lambda conn: tool_calls.note_untrusted(conn, seen, {"text": SECRET}))
    await owner.say("/delete 10 confirm")
    later = await owner.post("Hello")
    read = house.hub.storage.database.read
    assert await read(lambda conn: tool_calls.is_tainted(conn, str(later["messageId"])))
    seen_now = await read(lambda conn: tool_calls.read_turn_provenance(conn, str(later["messageId"])))
    assert SECRET not in str(seen_now)
    again = await owner.post("What does the page say?", externalId="update-3")
    assert (again["duplicate"], len(owner.asked)) == (True, 2)
    assert await owner.say("/delete yesterday") == "Nothing was said here in that time."


@pytest.mark.req("CMD-04")
async def test_only_this_chat_of_this_person_is_deleted(house: House, owner: Speaker) -> None:
    ada = await let_in(house, "ada", admin=True)
    theirs, other = await ada.post("mine"), await Speaker(house, house.owner, "other").post("elsewhere")
    await owner.say("here")
    await owner.say("/delete today confirm")
    assert (await ada.http.get(f"/threads/{theirs['threadId']}/messages")).json()["messages"][0]["text"] == "mine"
    assert await texts(house, other["threadId"]) == ["elsewhere"]


@pytest.mark.req("CMD-04", "POL-03")
async def test_a_question_about_it_is_taken_back(house: House, owner: Speaker) -> None:
    await house.say({"to": "anna", "body": SECRET})
    await owner.say("/delete 1h confirm")
    assert await house.asked() == []
    assert SECRET not in str(await house.asked("cancelled"))


@pytest.mark.req("CMD-04")
async def test_nothing_is_deleted_while_the_agent_can_not_change_its_history(house: House, owner: Speaker) -> None:
    said = await owner.post(SECRET)
    await owner.say("/kill thinker")
    assert "All agents were stopped" in await owner.say("/delete 1h confirm")
    assert await texts(house, said["threadId"]) == [SECRET]
    await owner.say("/resume thinker")
    assert (await owner.say("/delete 1h confirm")).startswith("Deleted 2 messages")


class Remover:
    def __init__(self) -> None:
        self.removed: list[tuple[str, list[str]]] = []

    async def remove_messages(self, chat_id: str, wanted: Sequence[StoredMessage]) -> int:
        self.removed.append((chat_id, [message.content for message in wanted]))
        return len(wanted) - 1


@pytest.mark.req("CMD-04")
async def test_messages_are_removed_from_a_channel_that_can_and_others_say_that_they_can_not(
    house: House, owner: Speaker
) -> None:
    await owner.say("hello")
    assert await owner.say("/delete messages today") == "Messages of the channel api cannot be removed from here."
    command = house.hub.conversations.gate.commands._commands["delete"]
    assert isinstance(command, DeleteCommand)
    remover = Remover()
    command.deps.removers["api"] = remover  # type: ignore[index]
    asked = await owner.say("/delete messages 2")
    assert asked.endswith("To do it: /delete messages 2 confirm")
    assert remover.removed == []
    assert await owner.say("/delete messages 2 confirm") == "1 of 2 messages were removed from this chat."
    assert remover.removed == [("main", ["hello", "You said: hello"])]
