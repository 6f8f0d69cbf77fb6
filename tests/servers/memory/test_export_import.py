"""Memory as files: exported, edited, imported again; into another memory whole; and never past its owner."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from annabelle.core.errors import InvalidArguments, NotAllowed, NotFound
from annabelle.servers.memory.arguments import find_secret_kind
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.files.rows import FactImportRow
from servers.memory.memories import CITY, MAIL, TEA, MakeMemory, Memory, facts, fill, folder


def edit(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


@pytest.mark.req("MEM-08", "MEM-02")
async def test_an_export_is_pages_a_person_can_read_and_nobody_else(memory: Memory) -> None:
    call = await fill(memory)
    done = await call("export_memory")
    home = folder(memory)
    month = next((home / "conversations").iterdir())
    assert done.folder == str(home)
    assert done.files == [
        "profile.md",
        "facts.md",
        "contacts.md",
        "projects.md",
        f"conversations/{month.name}",
    ]
    assert done.counts == {"facts": 3, "contacts": 1, "projects": 1, "conversations": 1}
    written = [home / name for name in done.files]
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}
    assert "- name: Annabelle" in (home / "profile.md").read_text()
    page = (home / "facts.md").read_text()
    assert "## preference\n\n- Ada likes tea. <!-- " in page
    assert " untrusted " in page
    assert "Berlin" not in page  # history is in the JSON document
    assert "grace@navy.mil" in (home / "projects.md").read_text()
    assert "**user:** I am Ada" in month.read_text()
    assert not list(home.rglob("*.part"))
    stale = month.with_name("1999-12.md")
    stale.write_text("what nobody remembers")
    await call("export_memory")
    assert not stale.exists()
    before = page.replace(page.split("at=")[1].split(" ")[0], "")
    again = (home / "facts.md").read_text()
    assert again.replace(again.split("at=")[1].split(" ")[0], "") == before


@pytest.mark.req("MEM-08", "MEM-11")
@pytest.mark.incident("I-30")
async def test_exports_of_two_users_are_in_two_folders_and_neither_imports_the_others(memory: Memory) -> None:
    await fill(memory, "owner", "Ada")
    await fill(memory, "bob", "Bob")
    for user in ("owner", "bob"):
        for kind in ("markdown", "json"):
            await memory.as_person(user)("export_memory", format=kind)
    theirs, mine = folder(memory, "bob", "annabelle"), folder(memory)
    for home, name in ((mine, "Bob"), (theirs, "Ada")):
        assert not [path for path in home.rglob("*") if path.is_file() and name in path.read_text()]
    for path in (theirs / "facts.md", theirs / "memory.json", theirs):
        with pytest.raises(NotAllowed):
            await memory.as_person("owner")("import_memory", file_path=str(path))
    for path in (mine / "facts.md", mine):
        with pytest.raises(NotAllowed):
            await memory.as_person("bob")("import_memory", file_path=str(path))
    with pytest.raises((NotAllowed, NotFound)):
        await memory.as_person("owner")("import_memory", file_path="bob/annabelle/facts.md")
    with pytest.raises(NotAllowed):  # one agent's export is not another agent's to read
        await memory.as_("owner", "researcher")("import_memory", file_path=str(mine / "facts.md"))
    copied = await memory.as_person("owner", "researcher")("import_memory", file_path=str(mine / "facts.md"))
    assert copied.outcome["facts"] == {"added": 3}


@pytest.mark.req("MEM-08", "MEM-09")
async def test_an_edited_page_corrects_adds_and_removes_only_when_told(memory: Memory) -> None:
    call = await fill(memory)
    person = memory.as_person()
    await person("export_memory")
    page = folder(memory) / "facts.md"
    unchanged = await person("import_memory", file_path="facts.md")
    assert unchanged.outcome == {"facts": {"unchanged": 3, "removed from the page": 0}}

    edit(page, ("- Ada likes tea. <!--", "- Ada likes green tea. <!--"))
    edit(page, ("## pattern\n", "## pattern\n\n- Ada naps.\n"))
    gone = next(line for line in page.read_text().splitlines() if "lives in Lisbon" in line)
    edit(page, (f"{gone}\n", ""))
    told = await person("import_memory", file_path="facts.md", dry_run=True)
    assert (told.dry_run, told.finished) == (True, False)
    assert TEA in await facts(call)  # not yet

    done = await person("import_memory", file_path=str(page))
    assert done.outcome == told.outcome
    assert done.outcome["facts"] == {"corrected": 1, "added": 1, "unchanged": 1, "removed from the page": 1}
    assert [one.fact for one in done.removed] == ["Ada lives in Lisbon."]
    assert "prune retires them" in done.to_text()
    known = await facts(call)
    assert known == {
        "Ada likes green tea.": "trusted",
        "Ada naps.": "trusted",
        "Ada lives in Lisbon.": "trusted",
        MAIL: "untrusted",
    }
    new = next(fact for fact in (await call("list_facts")).facts if fact.fact == "Ada likes green tea.")
    why = await person("explain_fact", fact_id=new.id)
    assert TEA in why.to_text()
    assert "facts.md" in why.to_text()

    again = await person("import_memory", file_path="facts.md", prune=True)
    assert again.outcome["facts"] == {"known": 2, "unchanged": 1, "retired": 1}
    assert "Ada lives in Lisbon." not in await facts(call)
    found = await call("retrieve_memories", query="where does Ada live")
    assert "Lisbon" not in found.model_dump_json()


async def test_lines_that_are_gone_from_a_page_of_another_memory_retire_nothing(
    memory: Memory, open_memory: MakeMemory, sqlite_config: MemoryConfig
) -> None:
    other = open_memory(replace(sqlite_config, file=sqlite_config.file.with_name("other.db")))
    for number in range(5):
        await other.as_()("store_fact", fact=f"Something else, number {number}.", category="background")
    await other.as_()("export_memory")
    call = await fill(memory)
    before = await facts(call)
    done = await memory.as_person()("import_memory", file_path="facts.md", prune=True)
    assert "not exported from this memory" in done.to_text()
    assert set(before) < set(await facts(call))
    assert len(await facts(call)) == len(before) + 5


@pytest.mark.req("CTX-06", "MEM-08")
async def test_an_edited_profile_page_takes_effect_and_keeps_what_happened_since(memory: Memory) -> None:
    call = await fill(memory)
    await call("export_memory")
    await call("update_profile", updates={"user": {"job": "baker"}})
    edit(
        folder(memory) / "profile.md",
        ("- name: Annabelle", "- name: Bella"),
        ("- system_prompt:", "- system_prompt: Be kind.\n  - really"),
        ("- city: Lisbon\n", ""),
    )
    done = await memory.as_person()("import_memory", file_path="profile.md")
    assert done.outcome == {"profile": {"changed": 1}}
    shown = await call("get_profile")
    assert shown.profile == {
        "user": {"likes": ["tea"], "job": "baker"},
        "persona": {"name": "Bella", "system_prompt": "Be kind.\n- really"},
    }
    again = await memory.as_person()("import_memory", file_path="profile.md")
    assert again.outcome == {"profile": {"unchanged": 1}}
    assert (await call("rollback_profile", version=3)).profile["persona"] == {"name": "Annabelle"}


async def test_edited_contacts_and_projects_are_changed_and_added(memory: Memory) -> None:
    call = await fill(memory)
    await call("export_memory")
    home = folder(memory)
    assert (await memory.as_person()("import_memory", file_path=str(home))).outcome == {
        "contacts": {"unchanged": 1},
        "projects": {"unchanged": 1},
        "profile": {"unchanged": 1},
        "facts": {"unchanged": 3, "removed from the page": 0},
    }
    edit(
        home / "contacts.md",
        ("grace@navy.mil", "Grace@Yale.edu"),
        ("<!-- end", "## Kurt\n- email: k@x.org\n\n<!-- end"),
    )
    edit(home / "projects.md", ("- priority:", "- priority: high"), ("grace@navy.mil\n- desc", "k@x.org\n- desc"))
    edit(home / "projects.md", ("grace@navy.mil", "grace@yale.edu"))
    done = await memory.as_person()("import_memory", file_path=str(home))
    assert done.outcome["contacts"] == {"changed": 1, "added": 1}
    assert done.outcome["projects"] == {"changed": 1}
    people = {contact.email: contact for contact in (await call("list_contacts")).contacts}
    assert people["grace@yale.edu"].notes == "a\n\nb"
    project = (await call("list_projects")).projects[0]
    assert (project.priority, project.participants) == ("high", [people["k@x.org"].id])
    assert project.primary_contact_id == people["grace@yale.edu"].id
    assert (await call("list_project_sources")).sources[0].external_project_id == "A-0"

    edit(home / "projects.md", ("grace@yale.edu", "nobody@x.org"))
    with pytest.raises(InvalidArguments, match=r"names nobody@x\.org, who is no contact"):
        await memory.as_person()("import_memory", file_path="projects.md")


@pytest.mark.req("MEM-08", "MEM-09")
async def test_everything_goes_into_another_memory_with_where_it_came_from(
    memory: Memory, open_memory: MakeMemory, sqlite_config: MemoryConfig
) -> None:
    call = await fill(memory)
    await call("export_memory", format="json")
    source = folder(memory) / "memory.json"
    first = json.loads(source.read_text())
    assert first["annabelle_memory"] == 1
    assert len(first["facts"]) == 4

    other = open_memory(replace(sqlite_config, file=sqlite_config.file.with_name("other.db")))
    person = other.as_person("owner", "annabelle")
    done = await person("import_memory", file_path=str(source))
    assert (done.finished, done.staged, done.total) == (True, done.total, done.total)
    assert done.outcome["facts"] == {"added": 3, "added as history": 1}
    await person("export_memory", format="json")
    second = json.loads(source.read_text())

    def bare(rows: list[dict[str, object]]) -> list[dict[str, object]]:
        skipped = ("id", "origin", "superseded_by", "primary_contact_id", "participants", "project_id", "created_at")
        return [{key: value for key, value in row.items() if key not in skipped} for row in rows]

    for section in ("contacts", "projects", "project_sources", "profile_history", "conversations"):
        assert [{**row, "updated_at": None} for row in bare(second[section])] == [
            {**row, "updated_at": None} for row in bare(first[section])
        ]
    assert bare(second["facts"]) == bare(first["facts"])
    assert second["profile"] == first["profile"]
    for new, old in zip(second["facts"], first["facts"], strict=True):
        added = new["origin"].pop("import")
        assert added["file"] == "memory.json"
        assert new["origin"] == old["origin"]
        assert new["created_at"] == old["created_at"]
    ids = {row["fact"]: row["id"] for row in second["facts"]}
    moved = next(row for row in second["facts"] if row["fact"] == CITY)
    assert moved["superseded_by"] == ids["Ada lives in Lisbon."]
    found = await other.as_()("retrieve_memories", query="tea")
    assert TEA in found.to_text()

    again = await person("import_memory", file_path=str(source))
    assert again.outcome["facts"] == {"known": 4}
    assert again.outcome["conversations"] == {"known": 1}
    back = await memory.as_person()("import_memory", file_path=str(source))
    assert back.outcome["facts"] == {"known": 4}
    assert back.outcome["conversations"] == {"known": 1}
    assert back.outcome["profile"] == {"unchanged": 1}


@pytest.mark.req("TRU-03", "MEM-09")
async def test_what_others_wrote_is_labelled_in_every_memory_it_is_brought_to(memory: Memory) -> None:
    muse = memory.as_("owner", "muse")
    await muse("create_contact", name="Eve", email="eve@example.org")
    await muse("create_project", name="Trojan")
    await muse("update_profile", updates={"user": {"city": "Berlin"}})
    await fill(memory)
    read = memory.as_(trust="untrusted", origins=("gmail_read",))
    await read("create_contact", name="Eve the boss", email="eve@example.org")
    await read("create_project", name="Trojan", description="Open the gate")
    await read("update_profile", updates={"user": {"bank": "Evebank"}})
    person = memory.as_person()
    await person("export_memory")
    await person("export_memory", format="json")
    home = folder(memory)

    edit(home / "facts.md", ("- Ada likes tea. <!--", "- Ada likes green tea. <!--"))
    await memory.as_person("owner", "researcher")("import_memory", file_path=str(home))
    researcher = memory.as_("owner", "researcher")
    assert await facts(researcher) == {
        "Ada likes green tea.": "trusted",
        "Ada lives in Lisbon.": "trusted",
        MAIL: "untrusted",
    }
    await memory.as_person("owner", "muse")("import_memory", file_path=str(home / "memory.json"))
    for agent in (researcher, muse):
        people = {one.name: one.trust for one in (await agent("list_contacts")).contacts}
        assert people == {"Grace of Ada": "trusted", "Eve the boss": "untrusted"}
        work = {one.name: one.trust for one in (await agent("list_projects")).projects}
        assert work == {"Compiler": "trusted", "Trojan": "untrusted"}
    profile = await muse("get_profile")
    assert profile.profile["user"] == {"city": "Lisbon", "likes": ["tea"], "bank": "Evebank"}
    assert profile.untrusted_fields == ["user.bank"]

    page = home / "contacts.md"  # what a person wrote over it is theirs
    edit(page, ("## Eve the boss", "## Eve of sales"))
    await memory.as_person("owner", "scribe")("import_memory", file_path=str(page))
    scribe = await memory.as_("owner", "scribe")("list_contacts")
    assert {one.name: one.trust for one in scribe.contacts}["Eve of sales"] == "trusted"


def test_a_secret_is_found_although_its_name_stands_in_the_string_before_it() -> None:
    origin = {"first": "api_key=", "second": "q8Zk3vP0xT7mN2cL"}
    row = FactImportRow(fact="Likes tea", category="preference", origin=origin)
    assert [bool(find_secret_kind(text)) for text in row.iter_texts() if text] == [False, True]
