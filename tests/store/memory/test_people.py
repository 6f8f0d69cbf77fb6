"""Contacts, projects and where projects live, each owner's apart."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from annabelle.core.errors import Conflict, NotFound
from annabelle.store.database import Database
from annabelle.store.memory import contacts, projects
from annabelle.store.memory.contacts import Contact
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.projects import Project

MADE = {"trust": "trusted", "origin": {}}


async def contact(db: Database, owner: Owner, name: str, email: str, **more: object) -> Contact:
    values = {"name": name, "email": email, "type": "work", **MADE, **more}
    return await db.write(lambda c: contacts.create_contact(c, owner, values))


async def project(db: Database, owner: Owner, name: str, **more: object) -> Project:
    values = {"name": name, "status": "active", "type": "work", **MADE, **more}
    return await db.write(lambda c: projects.create_project(c, owner, values))


async def names(db: Database, owner: Owner, limit: int = 50, **wanted: object) -> list[str]:
    found = await db.read(lambda c: contacts.list_contacts(c, owner, contacts.ContactFilter(**wanted), limit))  # pyright: ignore
    return [one.name for one in found]


@pytest.mark.req("MEM-01", "MEM-02")
async def test_an_address_is_one_contact_however_it_is_spelled(memory_db: Database, ada: Owner, bob: Owner) -> None:
    first = await contact(memory_db, ada, "Grace", " Grace@Example.org ")
    assert first.email == "grace@example.org"
    with pytest.raises(Conflict, match=f"Contact {first.id} already"):
        await contact(memory_db, ada, "Another", "GRACE@example.ORG")
    theirs = await contact(memory_db, bob, "Grace of Bob", "grace@example.org")
    assert theirs.id != first.id

    second = await contact(memory_db, ada, "Kurt", "kurt@example.org")
    with pytest.raises(Conflict, match=f"Contact {first.id}"):
        await memory_db.write(lambda c: contacts.change_contact(c, ada, second.id, {"email": "Grace@example.org"}))
    moved = await memory_db.write(
        lambda c: contacts.change_contact(c, ada, second.id, {"email": "K@X.org", "company": "X"})
    )
    assert (moved.email, moved.company, moved.name) == ("k@x.org", "X", "Kurt")
    assert moved.updated_at > second.updated_at


async def test_contacts_are_found_by_parts_whatever_their_case(memory_db: Database, ada: Owner) -> None:
    await contact(memory_db, ada, "Jürgen Müller", "j@example.org", company="Öko AG")
    await contact(memory_db, ada, "Anna 100%", "a@example.org", company="oko", type="personal")
    await contact(memory_db, ada, "Nobody", "n@example.org")

    assert await names(memory_db, ada, name="MÜLL") == ["Jürgen Müller"]
    assert await names(memory_db, ada, company="ÖKO") == ["Jürgen Müller"]
    assert await names(memory_db, ada, name="%") == ["Anna 100%"]
    assert await names(memory_db, ada, type="personal") == ["Anna 100%"]
    assert await names(memory_db, ada, email=" J@EXAMPLE.org") == ["Jürgen Müller"]
    assert await names(memory_db, ada, limit=2) == ["Nobody", "Anna 100%"]


@pytest.mark.req("MEM-11")
@pytest.mark.incident("I-30")
async def test_nobody_reaches_somebody_elses_people_and_projects(memory_db: Database, ada: Owner, bob: Owner) -> None:
    hers = await contact(memory_db, ada, "Grace", "grace@example.org")
    work = await project(memory_db, ada, "Engine", primary_contact_id=hers.id)
    source, _ = await memory_db.write(lambda c: projects.link_source(c, ada, work.id, "github", {}))
    at = datetime(2026, 1, 1, tzinfo=UTC)

    for attempt in (
        lambda c: contacts.get_contact(c, bob, hers.id),
        lambda c: contacts.change_contact(c, bob, hers.id, {"name": "Mine"}),
        lambda c: projects.get_project(c, bob, work.id),
        lambda c: projects.change_project(c, bob, work.id, {"name": "Mine"}),
        lambda c: projects.create_project(
            c, bob, {"name": "P", "status": "active", "type": "work", "participants": [hers.id], **MADE}
        ),
        lambda c: projects.link_source(c, bob, work.id, "github", {}),
        lambda c: projects.unlink_source(c, bob, work.id, "github"),
        lambda c: projects.list_sources(c, bob, work.id, None, 50),
        lambda c: projects.mark_source_checked(c, bob, source.id, "ok", at),
    ):
        with pytest.raises(NotFound, match="There is no"):
            await memory_db.write(attempt)
    assert await names(memory_db, bob) == []
    assert await memory_db.read(lambda c: projects.list_projects(c, bob, projects.ProjectFilter(), 50)) == []
    assert await memory_db.read(lambda c: projects.list_sources(c, bob, None, None, 50)) == []
    assert await memory_db.read(lambda c: contacts.get_contact(c, ada, hers.id)) == hers
    assert await memory_db.read(lambda c: projects.get_project(c, ada, work.id)) == work


async def test_projects_are_found_by_everyone_in_them(memory_db: Database, ada: Owner) -> None:
    people = [(await contact(memory_db, ada, f"P{n}", f"p{n}@example.org")).id for n in range(13)]
    await project(memory_db, ada, "one", participants=[people[0]], company="Acme Ltd", priority="high")
    await project(memory_db, ada, "many", participants=[people[1], people[0], people[12]], status="paused")
    await project(memory_db, ada, "led", primary_contact_id=people[0], type="personal")
    await project(memory_db, ada, "alone")

    async def found(limit: int = 50, **wanted: object) -> list[str]:
        listed = await memory_db.read(
            lambda c: projects.list_projects(c, ada, projects.ProjectFilter(**wanted), limit)  # pyright: ignore
        )
        return [one.name for one in listed]

    assert await found(contact_id=people[0]) == ["led", "many", "one"]
    assert await found(contact_id=people[12]) == ["many"]
    assert await found(contact_id=people[2]) == []  # not the 2 of 12
    assert await found(status="paused") == ["many"]
    assert await found(type="personal") == ["led"]
    assert await found(company="acme") == ["one"]
    assert await found(priority="high") == ["one"]
    assert await found(limit=1) == ["alone"]


async def test_a_project_is_changed_where_asked_and_emptied_where_none(memory_db: Database, ada: Owner) -> None:
    who = await contact(memory_db, ada, "Grace", "grace@example.org")
    made = await project(memory_db, ada, "Engine", primary_contact_id=who.id, priority="low", company="Acme")
    other = await project(memory_db, ada, "Loom")
    with pytest.raises(Conflict, match=f"Project {made.id} is already called 'Engine'"):
        await project(memory_db, ada, "Engine")
    with pytest.raises(Conflict, match=f"Project {made.id}"):
        await memory_db.write(lambda c: projects.change_project(c, ada, other.id, {"name": "Engine"}))
    with pytest.raises(NotFound, match="contact 999"):
        await memory_db.write(lambda c: projects.change_project(c, ada, made.id, {"participants": [who.id, 999]}))

    values = {"primary_contact_id": None, "priority": None, "participants": [who.id]}
    changed = await memory_db.write(lambda c: projects.change_project(c, ada, made.id, values))
    assert (changed.primary_contact_id, changed.priority, changed.participants) == (None, None, [who.id])
    assert (changed.company, changed.name) == ("Acme", "Engine")


async def test_a_project_is_linked_once_to_each_server(memory_db: Database, ada: Owner) -> None:
    work = await project(memory_db, ada, "Engine")
    first, new = await memory_db.write(
        lambda c: projects.link_source(c, ada, work.id, "github", {"external_project_id": "42"})
    )
    again, newer = await memory_db.write(
        lambda c: projects.link_source(c, ada, work.id, "github", {"external_project_name": "engine"})
    )
    assert (new, newer) == (True, False)
    assert (again.id, again.external_project_id, again.external_project_name) == (first.id, "42", "engine")
    await memory_db.write(lambda c: projects.link_source(c, ada, work.id, "linear", {}))
    assert len(await memory_db.read(lambda c: projects.list_sources(c, ada, work.id, None, 50))) == 2
    assert len(await memory_db.read(lambda c: projects.list_sources(c, ada, None, "linear", 50))) == 1

    at = datetime(2026, 1, 1, tzinfo=UTC)
    seen = await memory_db.write(lambda c: projects.mark_source_checked(c, ada, first.id, "warning", at))
    assert (seen.last_status, seen.last_checked_at) == ("warning", at)
    await memory_db.write(lambda c: projects.unlink_source(c, ada, work.id, "github"))
    with pytest.raises(NotFound, match="not linked to github"):
        await memory_db.write(lambda c: projects.unlink_source(c, ada, work.id, "github"))
