"""Profiles: what an agent knows about its user and itself, with all earlier versions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import Connection, RowMapping, select, update

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Trust
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import load_row
from annabelle.store.memory.tables import profile_history, profiles
from annabelle.store.portable_sql import InsertNew

_insert = InsertNew(profiles, ("user_id", "agent_id"))

UNTRUSTED = "untrusted_fields"
"""Key in a version's origin that lists untrusted fields, such as `user.city`."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The current profile. Version 0 is empty."""

    content: JsonObject
    version: int = 0
    updated_at: datetime | None = None
    untrusted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ProfileVersion:
    version: int
    content: JsonObject
    reason: str
    trust: Trust
    origin: JsonObject
    changed_at: datetime

    @property
    def untrusted(self) -> frozenset[str]:
        return frozenset(cast("list[str]", self.origin.get(UNTRUSTED) or []))


@dataclass(frozen=True, slots=True)
class ProfileChangeReason:
    reason: str
    trust: Trust
    origin: JsonObject


def get_profile(connection: Connection, owner: Owner) -> Profile:
    """Returns the profile of an owner, empty if none was written."""
    row = connection.execute(select(profiles).where(owner.row_filter(profiles))).mappings().first()
    return Profile({}) if row is None else _profile_from_row(connection, owner, row)


def lock_profile(connection: Connection, owner: Owner) -> Profile:
    """Returns the profile, locked until the transaction ends, so that concurrent changes are not lost."""
    _insert.insert(connection, {**owner.columns(), "profile": {}, "version": 0, "updated_at": now()})
    held = select(profiles).where(owner.row_filter(profiles)).with_for_update()
    return _profile_from_row(connection, owner, connection.execute(held).mappings().one())


def write_profile(
    connection: Connection,
    owner: Owner,
    held: Profile,
    content: JsonObject,
    untrusted: Collection[str],
    why: ProfileChangeReason,
) -> Profile:
    """Writes the next version of a locked profile. Equal content makes no new version."""
    if content == held.content:
        return held
    at, version = now(), held.version + 1
    origin = {**why.origin, UNTRUSTED: sorted(untrusted)} if untrusted else why.origin
    _insert_version(connection, owner, ProfileVersion(version, content, why.reason, why.trust, origin, at))
    new = {"profile": content, "version": version, "updated_at": at}
    connection.execute(update(profiles).where(owner.row_filter(profiles)).values(new))
    return Profile(content, version, at, frozenset(untrusted))


def import_history(connection: Connection, owner: Owner, versions: Collection[ProfileVersion]) -> None:
    """Imports the versions of another memory, oldest first. Only for a profile without a history."""
    for version in versions:
        _insert_version(connection, owner, version)
        new = {"profile": version.content, "version": version.version, "updated_at": version.changed_at}
        connection.execute(update(profiles).where(owner.row_filter(profiles)).values(new))


def list_versions(connection: Connection, owner: Owner, limit: int) -> list[ProfileVersion]:
    """Lists versions, newest first."""
    query = select(profile_history).where(owner.row_filter(profile_history))
    rows = connection.execute(query.order_by(profile_history.c.version.desc()).limit(limit)).mappings()
    return [_version_from_row(row) for row in rows]


def get_version(connection: Connection, owner: Owner, version: int) -> ProfileVersion | None:
    query = select(profile_history).where(owner.row_filter(profile_history), profile_history.c.version == version)
    row = connection.execute(query).mappings().first()
    return None if row is None else _version_from_row(row)


def _insert_version(connection: Connection, owner: Owner, version: ProfileVersion) -> None:
    row: JsonObject = {**owner.columns(), **asdict(version)}
    row["profile"] = row.pop("content")
    connection.execute(profile_history.insert(), row)


def _profile_from_row(connection: Connection, owner: Owner, row: RowMapping) -> Profile:
    newest = get_version(connection, owner, row["version"])
    updated_at = row["updated_at"] if row["version"] else None
    return Profile(row["profile"], row["version"], updated_at, newest.untrusted if newest else frozenset())


def _version_from_row(row: RowMapping) -> ProfileVersion:
    return load_row(ProfileVersion, {**row, "content": row["profile"]})
