"""One chronological answer over everything a memory went through."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection

from annabelle.store.database import Database
from annabelle.store.memory import overview
from annabelle.store.memory.overview import MemoryTimelineEvent, TimelineQuery
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import contacts, conversations, facts, profile_history, projects

START = datetime(2026, 3, 1, tzinfo=UTC)
MADE = {"trust": "trusted", "origin": {}}


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def fact(connection: Connection, owner: Owner, text: str, hours: float, **more: object) -> int:
    moment = at(hours)
    values = {
        "fact": text,
        "fact_hash": text,
        "category": "background",
        "source": "chat",
        "confidence": 1.0,
        "valid_from": moment,
        "created_at": moment,
        "updated_at": moment,
        **MADE,
        **owner.columns(),
        **more,
    }
    return connection.execute(facts.insert().returning(facts.c.id), values).scalar_one()


def fill(connection: Connection, owner: Owner, name: str) -> None:
    """A day in the life: a fact, its correction, a talk, a profile change, a contact and a project."""
    whose = owner.columns()
    new = fact(connection, owner, f"{name} lives in Lisbon", 5, trust="untrusted")
    fact(
        connection,
        owner,
        f"{name} lives in Köln",
        1,
        retired_at=at(5),
        retired_because="superseded",
        superseded_by=new,
    )
    talk = {"session_id": "s", "speaker": name, "user_message": "I moved", "agent_response": "To Lisbon?", **whose}
    talk |= {"tags": [], "tools": [], "trust": "trusted", "said_at": at(4), "created_at": at(4)}
    connection.execute(conversations.insert(), talk)
    change = {"version": 1, "profile": {}, "reason": f"{name} moved", "changed_at": at(6), **MADE, **whose}
    connection.execute(profile_history.insert(), change)
    person = {"name": "Grace", "email": "g@x.org", "type": "work", **MADE, **whose}
    connection.execute(contacts.insert(), person | {"created_at": at(2), "updated_at": at(7)})
    work = {"name": "Engine", "status": "active", "type": "work", "participants": [], **MADE, **whose}
    connection.execute(projects.insert(), work | {"created_at": at(3), "updated_at": at(3)})


async def read(
    db: Database, owner: Owner, limit: int = 50, after: MemoryTimelineEvent | None = None, **span: object
) -> list[MemoryTimelineEvent]:
    asked = TimelineQuery(**{"since": START, **span})  # pyright: ignore
    return await db.read(lambda c: overview.read_timeline(c, owner, asked, limit, after.position if after else None))


@pytest.mark.req("MEM-02")
async def test_everything_comes_in_the_order_it_happened(memory_db: Database, ada: Owner) -> None:
    await memory_db.write(lambda c: fill(c, ada, "Ada"))
    events = await read(memory_db, ada)
    assert [(event.category, event.what, event.text) for event in events] == [
        ("facts", "learnt", "Ada lives in Köln"),
        ("contacts", "added", "Grace"),
        ("projects", "added", "Engine"),
        ("conversations", "said", "I moved"),
        ("facts", "learnt", "Ada lives in Lisbon"),
        ("facts", "superseded", "Ada lives in Köln"),
        ("profile_changes", "changed", "Ada moved"),
        ("contacts", "changed", "Grace"),
    ]
    assert events[5].after == "Ada lives in Lisbon"
    untrusted = [number for number, event in enumerate(events) if event.trust == "untrusted"]
    assert untrusted == [4, 5], "what took a trusted fact's place is told with it, and was written by others"


@pytest.mark.incident("I-30")
async def test_somebody_elses_day_is_not_in_it(memory_db: Database, ada: Owner, bob: Owner) -> None:
    await memory_db.write(lambda c: fill(c, bob, "Bob"))
    assert await read(memory_db, ada) == []
    assert await read(memory_db, Owner("bob", "researcher")) == []
    assert len(await read(memory_db, bob)) == 8


async def test_it_can_be_narrowed_by_time_category_and_words(memory_db: Database, ada: Owner) -> None:
    await memory_db.write(lambda c: fill(c, ada, "Ada"))
    assert [event.text for event in await read(memory_db, ada, since=at(2), until=at(4))] == ["Grace", "Engine"]
    assert {event.category for event in await read(memory_db, ada, categories=["contacts"])} == {"contacts"}
    assert [event.what for event in await read(memory_db, ada, query="KÖLN")] == ["learnt", "superseded"]
    assert [event.category for event in await read(memory_db, ada, query="to lisbon?")] == ["conversations"]
    assert await read(memory_db, ada, query="100% _certain_") == []
    assert await read(memory_db, ada, query="日本") == []


async def test_page_by_page_gives_the_same_as_all_at_once(memory_db: Database, ada: Owner) -> None:
    def many(connection: Connection) -> None:
        fill(connection, ada, "Ada")
        for number in range(450):  # several at each moment, more than one read fetches
            fact(connection, ada, f"fact {number}", number // 7, retired_at=at(number // 5), retired_because="deleted")

    await memory_db.write(many)
    everything = await read(memory_db, ada, 2000)
    assert len(everything) == 908

    paged: list[MemoryTimelineEvent] = []
    while page := await read(memory_db, ada, 97, paged[-1] if paged else None):
        paged += page
    assert paged == everything
