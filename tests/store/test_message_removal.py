"""What a person deletes from a chat: whole turns of a range, without their words, on both engines."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from annabelle.core.messages import TurnEvent
from annabelle.store import message_removal, messages, threads
from annabelle.store.database import Database
from annabelle.store.message_removal import REMOVED, MessageRange
from annabelle.store.tables import events, messages as table

pytestmark = pytest.mark.req("CMD-04")
CHAT = ("cli", "main", "owner")


async def answered(db: Database, receive, text: str, **more: object) -> str:
    received = await receive(text, **more)

    def answer(c) -> None:
        messages.add_reply(
            c, reply_to=received.message.id, content=f"re: {text}", metadata={"labels": ["x"], "y": text}
        )
        messages.set_message_state(c, received.message.id, "done")
        event = TurnEvent(message_id=received.message.id, key="m", type="message", data={"text": text})
        threads.append_events(c, received.message.thread_id, [event])

    await db.write(answer)
    return received.message.id


async def find(db: Database, wanted: MessageRange) -> list[str]:
    return [one.content for one in await db.read(lambda c: message_removal.list_chat_messages(c, CHAT, wanted))]


async def test_the_last_ones_are_whole_turns_without_commands_and_without_what_is_not_over(
    db: Database, receive
) -> None:
    await answered(db, receive, "one")
    await answered(db, receive, "two")
    await answered(db, receive, "/status", source="command")
    await receive("three")
    await answered(db, receive, "elsewhere", chat_id="other")
    await answered(db, receive, "theirs", user_id="ada")
    assert await find(db, MessageRange(last=1)) == ["two", "re: two"]
    assert await find(db, MessageRange(last=3)) == ["one", "re: one", "two", "re: two"]
    everything = ["one", "re: one", "two", "re: two", "/status", "re: /status"]
    assert await find(db, MessageRange()) == everything


async def test_the_rows_stay_without_their_words(db: Database, receive) -> None:
    kept = await answered(db, receive, "keep")
    gone_id = await answered(db, receive, "tulip", external_id="u1")
    gone = await db.read(lambda c: message_removal.list_chat_messages(c, CHAT, MessageRange(last=2)))
    await db.write(lambda c: message_removal.remove_content(c, gone))
    rows = await db.read(lambda c: c.execute(select(table).order_by(table.c.position)).mappings().all())
    assert [row["content"] for row in rows] == ["keep", "re: keep", REMOVED, REMOVED]
    assert rows[3]["metadata"] == {"labels": ["x"], "deleted": True}
    told = await db.read(lambda c: c.execute(select(events.c.message_id)).scalars().all())
    assert told == [kept]
    again = await receive("tulip", external_id="u1")
    assert (again.duplicate, again.message.id) == (True, gone_id)
    assert await find(db, MessageRange(last=10)) == ["keep", "re: keep"]
