"""What happened when, and how much is remembered, over the tools."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert

from annabelle.core.errors import ConfigMistake, InvalidArguments
from annabelle.servers.memory.config import MemoryConfig
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import facts
from servers.memory.memories import MakeMemory, Memory


async def remember(memory: Memory, owner: Owner, text: str, at: datetime, **more: object) -> None:
    """A fact as it was stored some time ago."""
    row = {"fact": text, "fact_hash": text, "category": "background", "source": "chat", "confidence": 1.0}
    row |= {"trust": "trusted", "origin": {}, "valid_from": at, "created_at": at, "updated_at": at}
    library = await memory.library()
    await library.database.write(lambda c: c.execute(insert(facts), {**row, **owner.columns(), **more}))


ADA = Owner("ada", "annabelle")


@pytest.mark.req("MEM-02")
async def test_a_day_is_the_users_own_day(open_memory: MakeMemory, config: MemoryConfig) -> None:
    memory = open_memory(config, timezone="America/New_York")
    await remember(memory, ADA, "late on the 30th", datetime(2026, 1, 31, 4, 30, tzinfo=UTC))
    await remember(memory, ADA, "late on the 31st", datetime(2026, 2, 1, 4, 30, tzinfo=UTC), trust="untrusted")
    await remember(memory, ADA, "early on the 1st", datetime(2026, 2, 1, 5, 0, tzinfo=UTC))
    call = memory.as_("ada")

    day = await call("query_timeline", date_from="2026-01-31", date_to="2026-01-31")
    assert [event.text for event in day.events] == ["late on the 31st"]
    assert day.to_text() == "2026-01-31 23:30  facts learnt: late on the 31st (untrusted)"
    assert day.trust == "untrusted"
    hours = await call("query_timeline", date_from="2026-01-31T23:30", date_to="2026-02-01T05:00:00Z")
    assert [event.text for event in hours.events] == ["late on the 31st", "early on the 1st"]
    assert (await memory.as_("bob")("query_timeline", date_from="2020-01-01")).events == []


@pytest.mark.req("MEM-02")
async def test_the_timeline_is_read_page_by_page(memory: Memory) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(7):
        await remember(memory, ADA, f"fact {number}", start + timedelta(hours=number // 3))
    call, seen, cursor = memory.as_("ada"), [], None
    while True:
        page = await call("query_timeline", date_from="2026-01-01", limit=2, cursor=cursor)
        seen += [event.text for event in page.events]
        cursor = page.next
        if cursor is None:
            break
    assert seen == [f"fact {number}" for number in range(7)]


async def test_a_contact_and_a_project_are_in_it_and_skills_are_the_hubs(memory: Memory) -> None:
    call = memory.as_("ada")
    await call("create_contact", name="Grace", email="g@x.org")
    await call("create_project", name="Compiler")
    await call("update_profile", updates={"user": {"city": "Köln"}}, reason="moved to Köln")
    found = await call("query_timeline", date_from="2020-01-01")
    assert [(event.category, event.what) for event in found.events] == [
        ("contacts", "added"),
        ("projects", "added"),
        ("profile_changes", "changed"),
    ]
    assert found.note is None
    only = await call("query_timeline", date_from="2020-01-01", categories=["skills", "contacts"])
    assert [event.text for event in only.events] == ["Grace"]
    assert "hub" in only.to_text()
    assert (await call("query_timeline", date_from="2020-01-01", categories=["skills"])).events == []
    words = await call("query_timeline", date_from="2020-01-01", query="KÖLN")
    assert [event.category for event in words.events] == ["profile_changes"]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
async def test_dates_that_are_none_are_refused_with_the_field_named(
    memory: Memory, open_memory: MakeMemory, config: MemoryConfig
) -> None:
    call = memory.as_("ada")
    for arguments, field in (
        ({"date_from": "last week"}, "date_from"),
        ({"date_from": "2026-13-01"}, "date_from"),
        ({"date_from": ""}, "date_from"),
        ({"date_from": "9999-12-31T23:59:59-12:00"}, "date_from"),
        ({"date_from": "2026-01-02", "date_to": "9999-12-31"}, "date_to"),
        ({"date_from": "2026-01-02", "date_to": "2026-01-01"}, "date_to"),
        ({"date_from": "2026-01-02", "cursor": "1_2"}, "cursor"),
        ({"date_from": "2026-01-02", "cursor": "2026-01-01_x_1"}, "cursor"),
        ({"date_from": "2026-01-02", "categories": ["secrets"]}, "categories.0"),
        ({"date_from": "2026-01-02", "limit": 100_000}, "limit"),
    ):
        with pytest.raises(InvalidArguments) as caught:
            await call("query_timeline", **arguments)
        assert caught.value.field == field
    elsewhere = open_memory(replace(config, file=config.file.with_name("other.db")), timezone="Atlantis/Capital")
    with pytest.raises(ConfigMistake, match="USER_TIMEZONE"):
        await elsewhere.as_("ada")("query_timeline", date_from="2026-01-01")


@pytest.mark.req("MEM-02", "MEM-06")
@pytest.mark.incident("I-30")
async def test_the_counts_are_those_of_the_owner(memory: Memory) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    call = memory.as_("ada")
    empty = await call("get_memory_stats")
    assert (empty.current_facts, empty.oldest, empty.profile_version, empty.last_backup) == (0, None, 0, None)
    await remember(memory, ADA, "one", at)
    await remember(memory, ADA, "two", at + timedelta(days=1), trust="untrusted", category="preference")
    await remember(memory, ADA, "old", at, retired_at=at, retired_because="deleted")
    await remember(memory, Owner("bob", "annabelle"), "his", at - timedelta(days=9))
    await call("create_contact", name="Grace", email="g@x.org")
    await call("create_project", name="Compiler")
    await call("update_profile", updates={"user": {"city": "Berlin"}})

    told = await call("get_memory_stats")
    assert (told.current_facts, told.retired_facts, told.trusted_facts, told.untrusted_facts) == (2, 1, 1, 1)
    assert [(row.category, row.current, row.retired, row.untrusted) for row in told.facts] == [
        ("background", 1, 1, 0),
        ("preference", 1, 0, 1),
    ]
    assert (told.contacts, told.projects, told.conversations, told.profile_version) == (1, 1, 0, 1)
    assert (told.oldest, told.newest) == (at, at + timedelta(days=1))
    assert told.vectors.stored + told.vectors.missing == 2
    assert told.database_bytes > 10_000
    assert told.to_text().startswith("2 facts (1 background, 1 preference), 1 of them untrusted; 1 retired.")
