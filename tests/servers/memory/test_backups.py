"""A damaged memory says so, names its newest backup, and comes back from it."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from annabelle.core.errors import NotAllowed, NotFound, OperatorMistake, StorageTrouble
from annabelle.core.messages import now
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.upkeep import back_up_if_due
from annabelle.store.backup import KEEP_BACKUPS, backup_time
from annabelle.store.engine import list_backups
from servers.memory.memories import CallTool, MakeMemory, Memory

PAGE = 4096


async def remember(call: CallTool, *names: str) -> None:
    for name in names:
        await call("create_contact", name=name, email=f"{name.lower()}@example.org", notes="n" * 500)


async def known(call: CallTool) -> set[str]:
    return {contact.name for contact in (await call("list_contacts", limit=200)).contacts}


@pytest.fixture
def saving(sqlite_config: MemoryConfig, open_memory: MakeMemory) -> Memory:
    return open_memory(sqlite_config, backup_hours=24)


async def backed_up(memory: Memory) -> Path:
    made = await (await memory.library()).upkeep.back_up_if_due()
    found = list_backups(memory.config.file, memory.config.backups)
    assert made is None or made == found[-1]
    return found[-1]


def damage_header(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"\xff" * 100)


def damage_middle(file: Path) -> None:
    """Every page but the first, so whatever is asked for meets one of them."""
    pages = file.stat().st_size // PAGE
    with file.open("r+b") as opened:
        opened.seek(PAGE)
        opened.write(os.urandom(PAGE * (pages - 1)))


@pytest.mark.incident("I-19", "I-22")
@pytest.mark.parametrize("damage", [damage_header, damage_middle])
async def test_a_damaged_memory_names_its_backup_and_is_restored_from_it(
    sqlite_config: MemoryConfig, open_memory: MakeMemory, damage: object
) -> None:
    people = [f"Person{number}" for number in range(50)]
    filling = open_memory(sqlite_config, backup_hours=0)  # a copy made in the middle would lack the rest
    await remember(filling.as_person(), *people)
    await filling.close()
    saving = open_memory(sqlite_config, backup_hours=24)
    newest = await backed_up(saving)
    await saving.close()
    damage(saving.config.file)  # type: ignore[operator]

    memory = open_memory(saving.config)
    for call, tool in (
        (memory.as_(), "list_contacts"),
        (memory.as_person("bob"), "get_profile"),
        (memory.as_(), "backfill_embeddings"),
    ):
        with pytest.raises(StorageTrouble) as told:
            await call(tool)
        assert "is damaged" in told.value.message
        assert str(newest) in (told.value.hint or "")
        assert "`annabelle memory restore`" in (told.value.hint or "")
    listed = await memory.as_person()("list_backups")
    assert [line.name for line in listed.backups] == [newest.name]

    restored = await memory.as_person()("restore_backup")
    assert restored.name == newest.name
    assert os.path.getsize(restored.kept) > 0, "what was damaged is kept"  # noqa: ASYNC240
    assert await known(memory.as_()) == set(people)
    await remember(memory.as_(), "Grace")
    assert await (await memory.library()).database.problems() == []


async def test_a_damaged_memory_is_never_copied_over_good_backups(saving: Memory) -> None:
    await remember(saving.as_person(), *(f"Person{number}" for number in range(50)))
    newest = await backed_up(saving)
    await saving.close()
    damage_middle(saving.config.file)
    os.utime(saving.config.file, (now().timestamp() + 200_000,) * 2)
    with pytest.raises(StorageTrouble, match="could not be written"):
        back_up_if_due(saving.config, now() + timedelta(days=2))
    assert list_backups(saving.config.file, saving.config.backups) == [newest]
    assert not list(saving.config.backups.glob(".*")), "half a copy is not left behind"


async def test_a_backup_is_made_when_something_changed_and_the_last_one_is_old(saving: Memory) -> None:
    file = saving.config.file
    call = saving.as_person()
    await remember(call, "Grace")
    started = backup_time(await backed_up(saving))
    assert started is not None

    def later(hours: float) -> Path | None:
        return back_up_if_due(saving.config, started + timedelta(hours=hours))

    await remember(call, "Edsger")
    assert later(23) is None, "the last one is not old enough"
    assert later(25) is not None
    assert later(60) is None, "nothing changed since"
    os.utime(file, (started.timestamp() + 26 * 3600,) * 2)
    assert later(50) is not None


async def test_a_clock_that_was_set_back_neither_stops_backups_nor_makes_too_many(saving: Memory) -> None:
    await remember(saving.as_person(), "Grace")
    last = await backed_up(saving)
    past = now() - timedelta(days=100)
    made = back_up_if_due(saving.config, past)
    assert made is not None
    assert list_backups(saving.config.file, saving.config.backups) == [last, made], "it counts as the newest"
    assert back_up_if_due(saving.config, past, age_hours=1) is None
    assert back_up_if_due(saving.config, past, age_hours=25) is not None


async def test_only_the_newest_backups_are_kept(saving: Memory) -> None:
    await remember(saving.as_person(), "Grace")
    await backed_up(saving)
    far = now() + timedelta(days=1000)
    os.utime(saving.config.file, (far.timestamp(),) * 2)
    for day in range(2, 5 + KEEP_BACKUPS):
        back_up_if_due(saving.config, now() + timedelta(days=day))
    assert len(list_backups(saving.config.file, saving.config.backups)) == KEEP_BACKUPS


@pytest.mark.parametrize("hours", [0.0, 24.0])
async def test_an_opened_memory_makes_its_backup_by_itself_unless_told_not_to(
    open_memory: MakeMemory, sqlite_config: MemoryConfig, hours: float
) -> None:
    for name, backups in (("Grace", 0), ("Edsger", 1 if hours else 0)):
        memory = open_memory(sqlite_config, backup_hours=hours)
        await (await memory.library()).upkeep.wait_until_done()
        assert len(list_backups(memory.config.file, memory.config.backups)) == backups, "an empty memory needs none"
        await remember(memory.as_person(), name)
        await memory.close()


@pytest.mark.incident("I-30")
async def test_only_the_owner_of_the_home_may_see_or_restore_backups(saving: Memory) -> None:
    await remember(saving.as_person(), "Grace")
    await backed_up(saving)
    for tool in ("list_backups", "restore_backup"):
        with pytest.raises(NotAllowed, match="owner"):
            await saving.as_person("bob")(tool)
        assert saving.server.tools[tool].audience == "people"


async def test_an_older_backup_is_restored_by_its_name_and_no_other_file_can_be(saving: Memory) -> None:
    call = saving.as_person()
    with pytest.raises(NotFound, match="no backup called"):
        await call("restore_backup", name="../data/memory.db")
    await remember(call, "Grace")
    first = await backed_up(saving)
    await remember(call, "Edsger")
    os.utime(saving.config.file, ((now() + timedelta(days=1)).timestamp(),) * 2)
    second = back_up_if_due(saving.config, now() + timedelta(days=2))
    assert second is not None
    await call("restore_backup", name=first.name)
    assert await known(call) == {"Grace"}
    # It is not the newest for long: what is dated ahead makes this clock one that was set back.
    await call("restore_backup", name=second.name)
    assert await known(call) == {"Grace", "Edsger"}


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
async def test_on_postgresql_the_servers_own_backups_are_used(memory: Memory) -> None:
    call = memory.as_person()
    assert "PostgreSQL" in (await call("list_backups")).to_text()
    with pytest.raises(OperatorMistake, match="PostgreSQL"):
        await call("restore_backup")
