"""Search in what was said, and pages of a thread, on both engines."""

from __future__ import annotations

import asyncio

import pytest

from annabelle.core.messages import SKILLS, InboundMessage, TurnEvent
from annabelle.store import claims, message_search, messages, threads
from annabelle.store.database import Database
from annabelle.store.message_removal import remove_content
from annabelle.store.message_search import search_messages
from annabelle.store.messages import QueueLimits
from annabelle.store.threads import Thread


async def found(db: Database, query: str, **more: int) -> list[str]:
    result = await db.read(lambda c: search_messages(c, "owner", query, limit=more.pop("limit", 20), **more))
    return [one.content for one in result.found]


@pytest.mark.req("THR-02")
async def test_words_are_found_whatever_their_case_accents_and_script(db: Database, receive) -> None:
    for text in ("Die GRÖSSE des Klaviers", "Ça coûte un été", "Фортепиано в марте", "我住在北京市中心", "two 🎹 keys"):
        await receive(text)
    assert await found(db, "größe klaviers") == ["Die GRÖSSE des Klaviers"]
    assert await found(db, "COUTE") == ["Ça coûte un été"]
    assert await found(db, "ФОРТЕПИАНО") == ["Фортепиано в марте"]
    assert await found(db, "北京") == ["我住在北京市中心"]
    assert await found(db, "🎹") == ["two 🎹 keys"]
    assert await found(db, "klaviers марте") == [], "every word has to be there"
    assert await found(db, "100% _") == [], "no sign has a meaning of its own"


@pytest.mark.req("THR-02")
async def test_the_newest_come_first_and_only_ones_own_threads_that_people_see(db: Database, receive) -> None:
    for number in range(5):
        await receive(f"piano {number}", chat_id=f"chat{number}")
    await receive("piano of somebody else", user_id="ada")

    def run_of_skill(c) -> None:
        thread = threads.find_or_create_thread(
            c, channel=SKILLS, chat_id="fire", user_id="owner", agent_id="annabelle", internal=True
        )
        message = InboundMessage(channel=SKILLS, chat_id="fire", sender_id="x", text="piano of a run", source="skill")
        messages.queue_message(c, thread, message, QueueLimits())

    await db.write(run_of_skill)

    def check_in(c) -> None:
        thread = threads.find_or_create_thread(c, channel="goal", chat_id="g", user_id="owner", agent_id="annabelle")
        message = InboundMessage(channel="goal", chat_id="g", sender_id="x", text="piano of a check-in", source="skill")
        messages.queue_message(c, thread, message, QueueLimits(), background=True)

    await db.write(check_in)
    assert await found(db, "piano", limit=3) == ["piano 4", "piano 3", "piano 2"]
    result = await db.read(lambda c: search_messages(c, "owner", "piano", limit=3))
    rest = await db.read(lambda c: search_messages(c, "owner", "piano", limit=3, before=result.more_before))
    assert ([one.content for one in rest.found], rest.more_before) == (["piano 1", "piano 0"], None)


@pytest.mark.req("THR-02")
async def test_a_conversation_that_has_ended_is_still_listed_found_and_read(db: Database, receive, thread) -> None:
    said = (await receive("the old piano")).message
    fresh = await db.write(lambda c: threads.replace_thread(c, thread.id))
    listed = await db.read(lambda c: threads.list_threads(c, "owner"))
    assert {one.id for one in listed} == {thread.id, fresh.id}
    assert await found(db, "piano") == ["the old piano"]
    assert [one.id for one in await db.read(lambda c: messages.list_messages(c, thread.id, "owner"))] == [said.id]


@pytest.mark.req("THR-02")
async def test_what_was_deleted_is_not_found(db: Database, receive) -> None:
    gone, kept = [(await receive(text)).message for text in ("a deleted piano", "a piano that was not deleted")]
    await db.write(lambda c: remove_content(c, [gone]))
    assert await found(db, "deleted") == [kept.content]


@pytest.mark.req("THR-01")
async def test_a_long_page_has_what_happened_in_each_of_its_turns(
    db: Database, receive, thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_IDS_AT_ONCE", 2)
    asked = [(await receive(str(number))).message.id for number in range(5)]
    events = [TurnEvent(message_id=one, key="call", type="tool_start", data={"call_id": one}) for one in asked]
    await db.write(lambda c: threads.append_events(c, thread.id, events))
    told = await db.read(lambda c: threads.list_tool_events(c, asked, "owner"))
    assert list(told) == asked
    assert await db.read(lambda c: threads.list_tool_events(c, asked, "ada")) == {}


@pytest.mark.req("THR-02")
async def test_a_search_reads_a_bounded_number_of_messages_and_says_where_to_go_on(
    db: Database, receive, monkeypatch: pytest.MonkeyPatch
) -> None:
    await receive("the one piano")
    for number in range(9):
        await receive(f"nothing {number}", chat_id=f"chat{number}")
    monkeypatch.setattr(message_search, "_PAGE", 2)
    monkeypatch.setattr(message_search, "_MOST_MESSAGES", 4)
    before, pages = None, 0
    while True:
        result = await db.read(lambda c, at=before: search_messages(c, "owner", "piano", limit=5, before=at))
        pages += 1
        if result.found or result.more_before is None:
            break
        before = result.more_before
    assert ([one.content for one in result.found], pages) == (["the one piano"], 3)


@pytest.mark.req("THR-02")
async def test_an_excerpt_shows_the_place_where_the_word_stands(db: Database, receive) -> None:
    await receive(f"{'filler ' * 200}the Übung of today {'more ' * 200}")
    await receive("字" * 900 + "钢琴" + "字" * 900)
    (one,) = (await db.read(lambda c: search_messages(c, "owner", "ubung", limit=5))).found
    assert "the Übung of today" in one.excerpt("ubung")
    assert len(one.excerpt("ubung")) <= 202
    (other,) = (await db.read(lambda c: search_messages(c, "owner", "钢琴", limit=5))).found
    assert "钢琴" in other.excerpt("钢琴")


@pytest.mark.req("THR-02")
async def test_a_thread_is_paged_in_both_directions_without_loss_or_double(db: Database, receive, thread) -> None:
    for number in range(7):
        await receive(str(number))
        await receive("of another chat", chat_id="other")

    async def page(**wanted: int) -> list[messages.StoredMessage]:
        return await db.read(lambda c: messages.list_messages(c, thread.id, "owner", limit=3, **wanted))

    down, at = list[str](), 0
    while rows := await page(after=at):
        down, at = [*down, *(row.content for row in rows)], rows[-1].position
    up, top = list[str](), 2**62
    while rows := await page(before=top):
        up, top = [*(row.content for row in rows), *up], rows[0].position
    assert down == up == [str(number) for number in range(7)]


@pytest.mark.req("THR-01")
async def test_a_message_is_taken_up_by_one_of_two_that_claim_it_at_once(db: Database, receive, thread: Thread) -> None:
    asked = (await receive("do it once")).message
    assert asked.state == "queued"
    taken = await asyncio.gather(
        *(db.write(lambda c, owner=owner: claims.claim_next_messages(c, owner, 5)) for owner in ("a", "b", "c", "d"))
    )
    assert [one.message_id for some in taken for one in some] == [asked.id]
    assert (await db.read(lambda c: messages.load_message(c, asked.id))).state == "running"
    assert await db.write(lambda c: claims.claim_next_messages(c, "e", 5)) == []
