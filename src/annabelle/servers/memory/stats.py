"""The tool that tells how much is remembered."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.memory import Trust
from annabelle.servers.kit import Result, current_call, deferred_module, tool
from annabelle.servers.memory.backups import made_at
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.opening import Opening
from annabelle.servers.memory.ownership import owner_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.store import trouble
    from annabelle.store.memory import stats, vectors
    from annabelle.store.memory.owner import Owner
else:
    trouble = deferred_module("annabelle.store.trouble")
    stats = deferred_module("annabelle.store.memory.stats")
    vectors = deferred_module("annabelle.store.memory.vectors")


class CategoryCount(BaseModel):
    """The facts of one category."""

    model_config = ConfigDict(frozen=True)

    category: str
    current: int = 0
    retired: int = Field(default=0, description="Corrected, merged or deleted; kept as history")
    untrusted: int = Field(default=0, description="Of the current ones, learnt from what others wrote")


class VectorCount(BaseModel):
    """What can be found by its meaning."""

    model_config = ConfigDict(frozen=True)

    model: str
    stored: int
    missing: int = Field(description="Found by their words only until backfill_embeddings has run")


class MemoryStats(Result):
    """How much is remembered."""

    facts: list[CategoryCount]
    current_facts: int
    retired_facts: int
    trusted_facts: int
    untrusted_facts: int
    conversations: int
    contacts: int
    projects: int
    project_sources: int
    profile_version: int
    vectors: VectorCount
    oldest: datetime | None
    newest: datetime | None
    database_bytes: int = Field(description="The whole database, of everybody who uses this home")
    last_backup: datetime | None
    trust: Trust = "trusted"

    def text(self) -> str:
        kinds = ", ".join(f"{count.current} {count.category}" for count in self.facts if count.current)
        days = f" from {self.oldest:%Y-%m-%d} to {self.newest:%Y-%m-%d}" if self.oldest and self.newest else ""
        backup = f"{self.last_backup:%Y-%m-%d %H:%M}" if self.last_backup else "none"
        return (
            f"{self.current_facts} facts{f' ({kinds})' if kinds else ''}, {self.untrusted_facts} of them untrusted; "
            f"{self.retired_facts} retired. {self.conversations} conversations, {self.contacts} contacts, "
            f"{self.projects} projects{days}. Vectors of {self.vectors.model}: {self.vectors.stored}, "
            f"{self.vectors.missing} missing. The database has {self.database_bytes / 1e6:.1f} MB; "
            f"last backup: {backup}."
        )


class StatsTools:
    """get_memory_stats."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_memory_stats(
        self,
        agent_id: Annotated[
            str | None, Field(description="The agent whose memory is meant; leave it out for your own")
        ] = None,
    ) -> MemoryStats:
        """Tell how much is remembered: facts by category, conversations, contacts, projects, vectors, size and the last
        backup."""
        owner = owner_of(current_call(), agent_id)
        library = await self._opening.library()
        model = str(library.embedder.model)

        def count(connection: Connection) -> tuple[stats.Stats, VectorCount, int]:
            return stats.read(connection, owner), _vectors(connection, model, owner), stats.size_bytes(connection)

        counted, found, size = await library.database.read(count)
        last_backup = await asyncio.to_thread(_last_backup, self._opening.config)
        return _told(counted, found, size, last_backup)


def _told(counted: stats.Stats, found: VectorCount, size: int, last_backup: datetime | None) -> MemoryStats:
    def total(category: str | None = None, *, retired: bool = False, trust: str | None = None) -> int:
        return sum(
            row.count
            for row in counted.facts
            if row.retired is retired and category in (None, row.category) and trust in (None, row.trust)
        )

    return MemoryStats(
        facts=[
            CategoryCount(
                category=name,
                current=total(name),
                retired=total(name, retired=True),
                untrusted=total(name, trust="untrusted"),
            )
            for name in sorted({row.category for row in counted.facts})
        ],
        current_facts=total(),
        retired_facts=total(retired=True),
        trusted_facts=total(trust="trusted"),
        untrusted_facts=total(trust="untrusted"),
        conversations=counted.conversations,
        contacts=counted.contacts,
        projects=counted.projects,
        project_sources=counted.project_sources,
        profile_version=counted.profile_version,
        vectors=found,
        oldest=counted.oldest,
        newest=counted.newest,
        database_bytes=size,
        last_backup=last_backup,
    )


def _vectors(connection: Connection, model: str, owner: Owner) -> VectorCount:
    missing = sum(vectors.count_missing(connection, model, kind, owner) for kind in ("fact", "conversation"))
    return VectorCount(model=model, stored=vectors.count(connection, model, owner=owner), missing=missing)


def _last_backup(config: MemoryConfig) -> datetime | None:
    if config.database_url is not None:
        return None
    found = trouble.backups_of(config.file, config.backups)
    return made_at(found[-1]) if found else None
