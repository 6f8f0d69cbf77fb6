"""Tools that maintain the memory: statistics, backups and missing vectors."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import NotFound, OperatorMistake
from annabelle.core.trust import Trust
from annabelle.servers.kit import Result, current_call, deferred_module, tool
from annabelle.servers.memory.arguments import Agent, require_home_owner, resolve_owner
from annabelle.servers.memory.config import MemoryConfig
from annabelle.servers.memory.lazy_memory import MemoryTools

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.store import backup, engine
    from annabelle.store.memory import overview, vectors
    from annabelle.store.memory.owner import Owner
else:
    backup = deferred_module("annabelle.store.backup")
    engine = deferred_module("annabelle.store.engine")
    overview = deferred_module("annabelle.store.memory.overview")
    vectors = deferred_module("annabelle.store.memory.vectors")


_ON_POSTGRES = "The memory is in PostgreSQL, whose own backups are used."


class BackupLine(Result):
    name: str
    made_at: datetime | None
    size_bytes: int


class BackupList(Result):
    backups: list[BackupLine] = Field(description="Newest first")
    folder: str
    note: str | None = None
    trust: Trust = "trusted"

    def to_text(self) -> str:
        if not self.backups:
            return self.note or f"There is no backup of the memory in {self.folder} yet."
        lines = (f"{line.name} ({line.size_bytes} bytes)" for line in self.backups)
        return "\n".join((f"Backups in {self.folder}, newest first:", *lines))


class BackupRestored(Result):
    name: str
    made_at: datetime | None
    kept: str = Field(description="What was in its place before")
    trust: Trust = "trusted"

    def to_text(self) -> str:
        return f"The memory is as it was in the backup {self.name}. What was there before is kept as {self.kept}."


class BackupTools(MemoryTools):
    """For the owner of the home alone: a backup holds everyone's rows."""

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="people")
    async def list_backups(self) -> BackupList:
        """List the backups of the memory that can be restored."""
        require_home_owner(current_call())
        folder = str(self._memory.config.backups)
        if self._memory.config.database_url is not None:
            return BackupList(backups=[], folder=folder, note=_ON_POSTGRES)
        found = await asyncio.to_thread(self._list_backup_files)
        return BackupList(backups=[await asyncio.to_thread(_describe_backup, path) for path in found], folder=folder)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False, audience="people")
    async def restore_backup(
        self,
        name: Annotated[
            str | None, Field(max_length=200, description="Name of a backup, as listed; by default the newest")
        ] = None,
    ) -> BackupRestored:
        """Put a backup in the place of the memory, for example when its file is damaged. What was there is kept."""
        require_home_owner(current_call())
        if self._memory.config.database_url is not None:
            raise OperatorMistake(_ON_POSTGRES, hint="Restore with the tools of the database server.")
        chosen = await self._find_backup(name)

        async def restore_file() -> Path:
            return await asyncio.to_thread(backup.restore_file, chosen, self._memory.config.file)

        kept = await self._memory.replace(restore_file)
        await self._memory.get()  # says at once when this backup is no use either
        return BackupRestored(name=chosen.name, made_at=backup.backup_time(chosen), kept=str(kept))

    async def _find_backup(self, name: str | None) -> Path:
        found = await asyncio.to_thread(self._list_backup_files)
        chosen = next((path for path in found if name is None or path.name == name), None)
        if chosen is None:
            missing = "There is no backup of the memory yet." if name is None else f"There is no backup called {name}."
            raise NotFound(missing, hint=f"Backups are kept in {self._memory.config.backups}.", field="name")
        return chosen

    def _list_backup_files(self) -> list[Path]:
        return engine.list_backups(self._memory.config.file, self._memory.config.backups)[::-1]


def _describe_backup(path: Path) -> BackupLine:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        size = 0  # removed this moment, because a newer one was made
    return BackupLine(name=path.name, made_at=backup.backup_time(path), size_bytes=size)


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

    def to_text(self) -> str:
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


class StatsTools(MemoryTools):
    """get_memory_stats."""

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_memory_stats(
        self,
        agent_id: Agent = None,
    ) -> MemoryStats:
        """Tell how much is remembered: facts by category, conversations, contacts, projects, vectors, size and the last
        backup."""
        owner = resolve_owner(current_call(), agent_id)
        memory = await self._memory.get()
        model = str(memory.embedder.model)

        def count_rows(connection: Connection) -> tuple[overview.OwnerStats, VectorCount, int]:
            return (
                overview.read_stats(connection, owner),
                _count_vectors(connection, model, owner),
                overview.database_size(connection),
            )

        counted, found, size = await memory.database.read(count_rows)
        last_backup = await asyncio.to_thread(_find_last_backup, self._memory.config)
        return _to_stats(counted, found, size, last_backup)


def _to_stats(counted: overview.OwnerStats, found: VectorCount, size: int, last_backup: datetime | None) -> MemoryStats:
    def total(category: str | None = None, *, retired: bool = False, trust: str | None = None) -> int:
        return sum(
            row.count
            for row in counted.facts
            if row.retired is retired and category in (None, row.category) and trust in (None, row.trust)
        )

    facts = [
        CategoryCount(
            category=name,
            current=total(name),
            retired=total(name, retired=True),
            untrusted=total(name, trust="untrusted"),
        )
        for name in sorted({row.category for row in counted.facts})
    ]
    totals = {
        "current_facts": total(),
        "retired_facts": total(retired=True),
        "trusted_facts": total(trust="trusted"),
        "untrusted_facts": total(trust="untrusted"),
    }
    rest = {"vectors": found, "database_bytes": size, "last_backup": last_backup}
    return MemoryStats.model_validate({**asdict(counted), "facts": facts, **totals, **rest})


def _count_vectors(connection: Connection, model: str, owner: Owner) -> VectorCount:
    missing = sum(vectors.count_missing(connection, model, kind, owner) for kind in ("fact", "conversation"))
    return VectorCount(model=model, stored=vectors.count_vectors(connection, model, owner=owner), missing=missing)


def _find_last_backup(config: MemoryConfig) -> datetime | None:
    if config.database_url is not None:
        return None
    found = engine.list_backups(config.file, config.backups)
    return backup.backup_time(found[-1]) if found else None


class BackfillResult(Result):
    done: int = Field(description="Rows that got a vector now")
    remaining: int
    total: int = Field(description="Rows that can be searched")
    model: str
    trust: Trust = "trusted"

    def to_text(self) -> str:
        left = f"{self.remaining} of {self.total} still lack one" if self.remaining else f"all {self.total} have one"
        return f"{self.done} rows got a vector of {self.model}; {left}."


class BackfillTools(MemoryTools):
    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def backfill_embeddings(
        self,
        agent_id: Annotated[str | None, Field(description="Whose memory; by default the calling agent's own")] = None,
        batch_size: Annotated[int, Field(ge=1, le=200, description="How many rows at most")] = 50,
    ) -> BackfillResult:
        """Make the missing vectors of one batch of facts and conversations, so that they are found by meaning too.
        This also happens by itself in the background; call it again until nothing remains."""
        owner = resolve_owner(current_call(), agent_id)
        memory = await self._memory.get()
        done = await memory.reembedding.embed_batch(batch_size, owner)
        remaining, present = (
            await memory.reembedding.count_missing(owner),
            await memory.reembedding.count_present(owner),
        )
        return BackfillResult(
            done=done, remaining=remaining, total=remaining + present, model=str(memory.embedder.model)
        )
