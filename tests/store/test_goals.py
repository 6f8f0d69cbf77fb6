"""Goals, notes and learnings, on both engines."""

from __future__ import annotations

from datetime import timedelta

import pytest

from annabelle.core.errors import Conflict, NotFound
from annabelle.core.messages import now
from annabelle.store import goals, threads
from annabelle.store.database import Database
from annabelle.store.goals import MOST_LEARNINGS, NewGoal, NewNote, StoredGoal

pytestmark = pytest.mark.req("AGE-02")


async def add(db: Database, title: str, user_id: str = "ada") -> StoredGoal:
    return await db.write(lambda c: goals.add_goal(c, NewGoal(user_id=user_id, agent_id="annabelle", title=title)))


async def note(db: Database, goal: StoredGoal | None, title: str, content: str = "", user_id: str = "ada") -> str:
    new = NewNote(user_id=user_id, goal_id=goal.id if goal else None, title=title, content=content, written_by="user")
    return (await db.write(lambda c: goals.add_note(c, new))).id


async def titles(db: Database, user_id: str = "ada", **which: bool) -> list[str]:
    return [one.title for one in await db.read(lambda c: goals.list_goals(c, user_id, **which))]


async def test_goals_stand_in_their_persons_order_and_nobody_elses(db: Database) -> None:
    piano, garden, _taxes = [await add(db, title) for title in ("piano", "garden", "taxes")]
    await add(db, "secret", user_id="bob")
    assert (piano.state, piano.position) == ("waiting", 1)
    await db.write(lambda c: goals.order_goals(c, "ada", [garden.id]))
    assert await titles(db) == ["garden", "piano", "taxes"]
    await db.write(lambda c: goals.change_goal(c, garden.id, {"state": "archived"}))
    assert await titles(db) == ["piano", "taxes"]
    assert await titles(db, archived=True) == ["garden", "piano", "taxes"]
    assert await titles(db, "bob") == ["secret"]
    for user_id, goal_id in (("bob", piano.id), ("ada", "goal_none")):
        with pytest.raises(NotFound):
            await db.read(lambda c, u=user_id, g=goal_id: goals.get_goal(c, g, u))
    with pytest.raises(NotFound):
        await db.write(lambda c: goals.order_goals(c, "bob", [piano.id]))


async def test_a_conversation_is_named_by_a_goal_of_its_own_person_only(db: Database) -> None:
    piano = await add(db, "piano")
    for channel, user_id, title in (("goal", "ada", "piano"), ("goal", "bob", None), ("api", "ada", None)):
        thread = await db.write(
            lambda c, at=channel, who=user_id: threads.find_or_create_thread(
                c, channel=at, chat_id=piano.id, user_id=who, agent_id="annabelle"
            )
        )
        assert (await db.read(lambda c, own=thread: threads.get_thread(c, own.id, own.user_id))).title == title


async def test_notes_are_found_by_all_their_words_in_any_letters(db: Database) -> None:
    piano, garden = await add(db, "piano"), await add(db, "garden")
    await note(db, piano, "Übung", "Tonleitern in C")
    await note(db, piano, "Teacher", "Frau Öhm, Tonleitern")
    await note(db, garden, "Roses", "100% compost")
    await note(db, None, "Loose")
    await note(db, None, "Bob's", user_id="bob")

    async def found(goal_id: str | None = None, words: str = "", limit: int = 50) -> list[str]:
        return [one.title for one in await db.read(lambda c: goals.list_notes(c, "ada", goal_id, words, limit))]

    assert await found() == ["Loose", "Roses", "Teacher", "Übung"]
    assert await found(piano.id) == ["Teacher", "Übung"]
    assert await found(words="ÖHM tonleitern") == ["Teacher"]
    assert await found(words="tonLEITERN") == ["Teacher", "Übung"]
    assert await found(words="tonleitern", limit=1) == ["Teacher"]
    assert await found(words="100%") == ["Roses"]
    assert await found(words="_") == []


async def test_a_note_is_changed_and_removed_by_its_own_id(db: Database) -> None:
    piano = await add(db, "piano")
    note_id = await note(db, piano, "Teacher", "Frau Öhm")
    before = await db.read(lambda c: goals.get_note(c, note_id, "ada"))
    await db.write(lambda c: goals.change_note(c, note_id, {"content": "Herr Ohm"}))
    after = await db.read(lambda c: goals.get_note(c, note_id, "ada"))
    assert (after.title, after.content, after.created_at) == ("Teacher", "Herr Ohm", before.created_at)
    assert after.updated_at >= before.updated_at
    assert await db.read(lambda c: goals.count_notes_since(c, piano.id, now() - timedelta(days=7))) == 1
    assert await db.read(lambda c: goals.count_notes_since(c, piano.id, now() + timedelta(days=7))) == 0
    with pytest.raises(NotFound):
        await db.read(lambda c: goals.get_note(c, note_id, "bob"))
    await db.write(lambda c: goals.delete_note(c, note_id))
    with pytest.raises(NotFound):
        await db.read(lambda c: goals.get_note(c, note_id, "ada"))


async def test_a_goal_keeps_fifty_learnings_and_none_twice(db: Database) -> None:
    piano, garden = await add(db, "piano"), await add(db, "garden")
    first = await db.write(lambda c: goals.add_learning(c, piano.id, "Practises in the morning", ["web_fetch"]))
    same = await db.write(lambda c: goals.add_learning(c, piano.id, "practises in the Morning"))
    assert same == first
    assert first.read_from == ["web_fetch"]
    for number in range(1, MOST_LEARNINGS):
        await db.write(lambda c, n=number: goals.add_learning(c, piano.id, f"Learning {n}"))
    with pytest.raises(Conflict):
        await db.write(lambda c: goals.add_learning(c, piano.id, "One too many"))
    assert await db.write(lambda c: goals.add_learning(c, piano.id, "Learning 7"))
    assert await db.write(lambda c: goals.change_learning(c, first.id, piano.id, "Practises at night"))
    assert not await db.write(lambda c: goals.change_learning(c, first.id, garden.id, "x"))
    assert not await db.write(lambda c: goals.remove_learning(c, first.id, garden.id))
    learnt = await db.read(lambda c: goals.list_learnings(c, piano.id))
    assert (len(learnt), learnt[0].content) == (MOST_LEARNINGS, "Practises at night")
    assert await db.write(lambda c: goals.remove_learning(c, first.id, piano.id))
    assert len(await db.read(lambda c: goals.list_learnings(c, piano.id))) == MOST_LEARNINGS - 1
    assert await db.read(lambda c: goals.list_learnings(c, garden.id)) == []


async def test_a_deleted_goal_takes_its_own_things_with_it(db: Database) -> None:
    piano, garden = await add(db, "piano"), await add(db, "garden")
    for goal in (piano, garden):
        await note(db, goal, f"note of {goal.title}")
        await db.write(lambda c, g=goal: goals.add_learning(c, g.id, "x"))
    await db.write(lambda c: goals.delete_goal(c, piano.id))
    assert await titles(db) == ["garden"]
    assert [one.title for one in await db.read(lambda c: goals.list_notes(c, "ada"))] == ["note of garden"]
    assert len(await db.read(lambda c: goals.list_learnings(c, garden.id))) == 1
