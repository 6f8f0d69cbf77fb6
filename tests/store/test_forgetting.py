"""A text goes from the hub's tables and files, and everything else stays."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from annabelle.agents.check_in import CheckIn, set_check_in
from annabelle.core.messages import TurnEvent, now
from annabelle.core.secrets.forget_mask import FORGOTTEN_MASK, ForgetMatcher
from annabelle.skills.schedule import OneMoment
from annabelle.store import backup, feed, goals, memory_queue, messages, sessions, text_removal, threads, tool_calls
from annabelle.store.database import Database
from annabelle.store.feed import NewFeedItem
from annabelle.store.goals import NewGoal, NewNote
from annabelle.store.messages import QueuedReceipt
from annabelle.store.tables import (
    events as event_table,
    feed_items,
    messages as messages_table,
    metadata,
    tool_calls as call_table,
)
from annabelle.store.text_removal import TextRemoval, bytes_contain, database_bytes_contain, file_contains
from annabelle.store.threads import Thread
from annabelle.store.tool_calls import NewToolCall

SECRET = "Zürich Vault 4711"
TABLES = [f'"{name}"' for name in metadata.tables]


def sweep(*, apply: bool = True, user: str = "owner") -> TextRemoval:
    return TextRemoval(ForgetMatcher([SECRET]), apply, user)


async def everything(db: Database) -> str:
    """All cells of all tables, as they are stored."""

    def read(connection: sa.Connection) -> str:
        cells: list[str] = []
        for name in metadata.tables:
            rows = connection.exec_driver_sql(f'SELECT * FROM "{name}"')
            cells += [str(cell) for row in rows for cell in row]
        return "\n".join(cells)

    return await db.read(read)


@pytest.mark.req("TRU-09")
async def test_a_text_is_gone_from_every_table_and_the_rest_stays(db: Database, thread: Thread, receive):
    said: QueuedReceipt = await receive(f"my code is {SECRET.upper()}")
    await receive("something else")

    def more(connection: sa.Connection) -> None:
        message_id = said.message.id
        call = NewToolCall(f"{message_id}:1:0", "memory_store_fact", "plainhash", "owner", message_id=message_id)
        tool_calls.begin_call(connection, call)
        tool_calls.finish_call(connection, call.call_id, {"text": f"stored: {SECRET}", "trust": "trusted"})
        sessions.append_session(connection, "annabelle", thread.id, [{"type": "turn", "user": SECRET}], user_id="owner")
        memory_queue.add_unstored_turn(connection, said.message, "annabelle")
        start = {"tool": "memory_store_fact", "arguments": {"fact": SECRET}}
        threads.append_events(
            connection, thread.id, [TurnEvent(message_id=message_id, key="1:start", type="tool_start", data=start)]
        )
        mine = messages_table.c.id == message_id
        connection.execute(sa.update(messages_table).values(state="done"))
        connection.execute(sa.update(messages_table).where(mine).values(metadata={"id": SECRET, "kept": "yes"}))

    await db.write(more)
    assert ForgetMatcher([SECRET]).found_in(await everything(db))
    looked = await db.read(lambda c: text_removal.remove_text(c, sweep(apply=False)))
    assert ForgetMatcher([SECRET]).found_in(await everything(db))

    done = await db.write(lambda c: text_removal.remove_text(c, sweep()))

    assert done == looked == {"messages": 1, "events": 1, "tool_calls": 1, "sessions": 1}
    left = await everything(db)
    assert not ForgetMatcher([SECRET]).found_in(left)
    assert "something else" in left
    assert "yes" in left
    message = await db.read(lambda c: messages.load_message(c, said.message.id))
    assert message.content == FORGOTTEN_MASK
    hashes = await db.read(lambda c: c.execute(sa.select(call_table.c.arguments_hash)).scalars().all())
    assert hashes == ["forgotten"]
    assert await db.read(lambda c: memory_queue.list_unstored_turns(c, 10)) == []
    assert await db.write(lambda c: text_removal.remove_text(c, sweep())) == {}


@pytest.mark.req("TRU-09")
async def test_a_sentence_a_model_said_in_pieces_is_emptied_as_a_whole(db: Database, thread: Thread, receive):
    said: QueuedReceipt = await receive("hello")
    pieces = ["The code is Zür", "ich Va", "ult 47", "11."]
    spoken = [
        TurnEvent(message_id=said.message.id, key=f"1:1:{n}", type="text", step=1, attempt=1, data={"text": piece})
        for n, piece in enumerate(pieces)
    ]
    other = TurnEvent(message_id=said.message.id, key="2:1:0", type="text", step=2, attempt=1, data={"text": "Fine."})
    await db.write(lambda c: threads.append_events(c, thread.id, [*spoken, other]))

    assert await db.write(lambda c: text_removal.remove_text(c, sweep())) == {"events": 4}

    left = await db.read(lambda c: c.execute(sa.select(event_table.c.data).order_by(event_table.c.seq)).scalars().all())
    assert left == [{"text": ""}] * 4 + [{"text": "Fine."}]


async def test_a_name_of_a_chat_becomes_another_and_stays_one_of_a_kind(db: Database, receive):
    for chat in ("zürich vault 4711", "Zürich Vault 4711", "work"):
        await receive("hello", chat_id=chat)

    await db.write(lambda c: text_removal.remove_text(c, sweep()))

    found = [thread.chat_id for thread in await db.read(lambda c: threads.list_threads(c, "owner", limit=10))]
    assert len(found) == len(set(found)) == 4
    assert {"work", "main"} <= set(found)
    assert not ForgetMatcher([SECRET]).found_in(" ".join(found))


@pytest.mark.incident("I-30")
async def test_rows_of_another_person_are_theirs(db: Database, receive):
    await receive(SECRET, user_id="bob", chat_id="bobs")
    assert await db.write(lambda c: text_removal.remove_text(c, sweep())) == {}
    assert SECRET in await everything(db)


@pytest.mark.req("TRU-09")
@pytest.mark.incident("I-30")
async def test_goals_and_what_belongs_to_them_are_forgotten_for_their_person_alone(db: Database):
    at = now()

    def fill(connection: sa.Connection) -> None:
        for user in ("owner", "bob"):
            goal = goals.add_goal(connection, NewGoal(user_id=user, agent_id="annabelle", title=f"Find {SECRET}"))
            goals.add_learning(connection, goal.id, f"{SECRET} is old")
            note = NewNote(user_id=user, goal_id=goal.id, title="x", content=SECRET, written_by="user")
            goals.add_note(connection, note)
            for sort in ("recurring", "follow_up"):
                set_check_in(connection, goal, CheckIn(sort=sort, schedule=OneMoment(at), intent="Ask."), at)
            for kind in ("discovery", "reflection"):
                item = NewFeedItem(user_id=user, kind=kind, title=kind, content=SECRET)
                feed.add_feed_item(connection, item)

    await db.write(fill)
    digests = sa.select(feed_items.c.digest).where(feed_items.c.user_id == "owner")
    before = await db.read(lambda c: c.execute(digests).scalars().all())
    looked = await db.write(lambda c: text_removal.remove_text(c, sweep(apply=False)))
    done = await db.write(lambda c: text_removal.remove_text(c, sweep()))
    assert done == looked == {"goals": 1, "goal_learnings": 1, "goal_notes": 1, "feed_items": 2, "skills": 2}
    assert not set(before) & set(await db.read(lambda c: c.execute(digests).scalars().all()))
    assert await db.write(lambda c: text_removal.remove_text(c, sweep())) == {}
    assert await db.write(lambda c: text_removal.remove_text(c, sweep(user="bob"))) == done
    assert not ForgetMatcher([SECRET]).found_in(await everything(db))


@pytest.mark.req("TRU-09")
async def test_no_free_page_journal_or_new_backup_keeps_it(tmp_path: Path):
    file = tmp_path / "annabelle.db"
    db = await Database.open(f"sqlite:///{file}")
    filler = "x" * 3000

    def fill(connection: sa.Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT)")
        for n in range(20):
            connection.exec_driver_sql("INSERT INTO notes (note) VALUES (?)", (f"{filler}{SECRET} {n}{filler}",))

    await db.write(fill)
    before = backup.copy_file(file, tmp_path / "backups", "old", now())
    assert file_contains(before, ForgetMatcher([SECRET]))
    await db.write(lambda c: c.exec_driver_sql("DELETE FROM notes") and None)
    journal = file.with_name("annabelle.db-wal")
    assert bytes_contain(file, ForgetMatcher([SECRET])) or bytes_contain(
        journal, ForgetMatcher([SECRET])
    )  # deleting alone is not enough

    await db.vacuum(TABLES)

    assert journal.stat().st_size == 0
    assert not file_contains(file, ForgetMatcher([SECRET]))
    after = backup.copy_file(file, tmp_path / "backups", "new", now())
    assert not file_contains(after, ForgetMatcher([SECRET]))
    await db.close()


async def test_a_row_that_is_split_over_pages_is_seen_in_a_copy(tmp_path: Path):
    file = tmp_path / "annabelle.db"
    matcher = ForgetMatcher(["matcher " * 2000])
    db = await Database.open(f"sqlite:///{file}")
    await db.write(lambda c: c.exec_driver_sql("CREATE TABLE notes (note TEXT)") and None)
    await db.write(lambda c: c.exec_driver_sql("INSERT INTO notes VALUES (?)", ("matcher " * 2000,)) and None)
    await db.close()
    assert not bytes_contain(file, matcher)
    assert file_contains(file, matcher)


@pytest.mark.parametrize("word", ["forgotten", "owner", "messages", "main", "done"])
async def test_words_that_rows_themselves_are_made_of_come_to_an_end(db: Database, receive, word: str):
    await receive(f"I say {word}", chat_id=f"my {word}")
    again = TextRemoval(ForgetMatcher([word]), apply=True, user_id="owner")
    assert (await db.write(lambda c: text_removal.remove_text(c, again)))["messages"] == 1
    assert (
        await db.write(
            lambda c: text_removal.remove_text(c, TextRemoval(ForgetMatcher([word]), apply=True, user_id="owner"))
        )
        == {}
    )
    assert [thread.user_id for thread in await db.read(lambda c: threads.list_threads(c, "owner"))][:1] == ["owner"]


@pytest.mark.req("TRU-09")
def test_a_database_that_can_not_be_read_is_not_taken_for_one_without_the_text(tmp_path: Path):
    file, matcher = tmp_path / "annabelle.db", ForgetMatcher([SECRET])
    with pytest.raises(OSError, match="can not be read"):
        database_bytes_contain(file, matcher)
    file.write_bytes(SECRET.encode() + bytes(20_000_000))
    assert database_bytes_contain(file, matcher), "a look that ends early is none that failed"
