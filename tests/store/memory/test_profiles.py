"""Profiles keep every version, and two changes at once keep both."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import Connection

from annabelle.core.tools import JsonObject
from annabelle.store.database import Database
from annabelle.store.memory import profiles
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.profiles import Profile, ProfileChangeReason, ProfileVersion

WHY = ProfileChangeReason("told so", "trusted", {"kind": "chat"})


def write(owner: Owner, content: JsonObject, untrusted: tuple[str, ...] = ()):
    def change(connection: Connection) -> Profile:
        return profiles.write_profile(
            connection, owner, profiles.lock_profile(connection, owner), content, untrusted, WHY
        )

    return change


@pytest.mark.req("MEM-01", "MEM-02")
async def test_every_change_is_a_version_and_the_same_again_is_none(memory_db: Database, ada: Owner) -> None:
    assert await memory_db.read(lambda c: profiles.get_profile(c, ada)) == Profile({})
    await memory_db.write(write(ada, {"user": {"city": "Berlin"}}))
    await memory_db.write(write(ada, {"user": {"city": "Berlin"}}))
    await memory_db.write(write(ada, {"user": {"city": "Lisbon"}}, ("user.city",)))

    now = await memory_db.read(lambda c: profiles.get_profile(c, ada))
    history = await memory_db.read(lambda c: profiles.list_versions(c, ada, 10))
    first = await memory_db.read(lambda c: profiles.get_version(c, ada, 1))

    assert (now.version, now.content, now.untrusted) == (2, {"user": {"city": "Lisbon"}}, {"user.city"})
    assert [version.version for version in history] == [2, 1]
    assert first is not None
    assert (first.content, first.reason, first.trust) == ({"user": {"city": "Berlin"}}, "told so", "trusted")
    assert first.untrusted == frozenset()
    assert await memory_db.read(lambda c: profiles.list_versions(c, ada, 1)) == history[:1]
    assert await memory_db.read(lambda c: profiles.get_version(c, ada, 9)) is None


@pytest.mark.incident("I-30")
async def test_profiles_of_two_users_and_two_agents_are_apart(memory_db: Database, ada: Owner, bob: Owner) -> None:
    other_agent = Owner(ada.user_id, "researcher")
    await memory_db.write(write(ada, {"user": {"name": "Ada"}}))
    for stranger in (bob, other_agent):
        assert await memory_db.read(lambda c, who=stranger: profiles.get_profile(c, who)) == Profile({})
        assert await memory_db.read(lambda c, who=stranger: profiles.list_versions(c, who, 10)) == []
        assert await memory_db.read(lambda c, who=stranger: profiles.get_version(c, who, 1)) is None


async def test_changes_made_at_once_do_not_lose_each_other(memory_db: Database, ada: Owner) -> None:
    def add(field: str):
        def change(connection: Connection) -> Profile:
            held = profiles.lock_profile(connection, ada)
            return profiles.write_profile(connection, ada, held, {**held.content, field: True}, (), WHY)

        return change

    await asyncio.gather(*(memory_db.write(add(f"field{number}")) for number in range(12)))

    profile = await memory_db.read(lambda c: profiles.get_profile(c, ada))
    assert profile.version == 12
    assert set(profile.content) == {f"field{number}" for number in range(12)}


async def test_a_history_is_adopted_with_its_numbers(memory_db: Database, ada: Owner, bob: Owner) -> None:
    await memory_db.write(write(ada, {"user": {"a": 1}}))
    await memory_db.write(write(ada, {"user": {"a": 2}}, ("user.a",)))
    versions: list[ProfileVersion] = await memory_db.read(lambda c: profiles.list_versions(c, ada, 10))

    def adopt(connection: Connection) -> None:
        profiles.lock_profile(connection, bob)
        profiles.import_history(connection, bob, versions[::-1])

    await memory_db.write(adopt)
    assert await memory_db.read(lambda c: profiles.list_versions(c, bob, 10)) == versions
    assert (await memory_db.read(lambda c: profiles.get_profile(c, bob))).untrusted == {"user.a"}
