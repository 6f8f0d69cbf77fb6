"""The copies of the memory that are made while it changes, and the way back to one of them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from annabelle.core.errors import NotFound, OperatorMistake
from annabelle.core.memory import Trust
from annabelle.servers.kit import Result, current_call, deferred_module, tool
from annabelle.servers.memory.opening import Opening
from annabelle.servers.memory.ownership import require_home_owner

if TYPE_CHECKING:
    from annabelle.store import backup, trouble
else:
    backup = deferred_module("annabelle.store.backup")
    trouble = deferred_module("annabelle.store.trouble")

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

    def text(self) -> str:
        if not self.backups:
            return self.note or f"There is no backup of the memory in {self.folder} yet."
        lines = (f"{line.name} ({line.size_bytes} bytes)" for line in self.backups)
        return "\n".join((f"Backups in {self.folder}, newest first:", *lines))


class Restored(Result):
    name: str
    made_at: datetime | None
    kept: str = Field(description="What was in its place before")
    trust: Trust = "trusted"

    def text(self) -> str:
        return f"The memory is as it was in the backup {self.name}. What was there before is kept as {self.kept}."


class BackupTools:
    """For the owner of the home alone: a backup holds everyone's rows."""

    def __init__(self, opening: Opening) -> None:
        self._opening, self._config = opening, opening.config

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="people")
    async def list_backups(self) -> BackupList:
        """List the backups of the memory that can be restored."""
        require_home_owner(current_call())
        folder = str(self._config.backups)
        if self._config.database_url is not None:
            return BackupList(backups=[], folder=folder, note=_ON_POSTGRES)
        found = await asyncio.to_thread(self._found)
        return BackupList(backups=[await asyncio.to_thread(_line, path) for path in found], folder=folder)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False, audience="people")
    async def restore_backup(
        self,
        name: Annotated[
            str | None, Field(max_length=200, description="Name of a backup, as listed; by default the newest")
        ] = None,
    ) -> Restored:
        """Put a backup in the place of the memory, for example when its file is damaged. What was there is kept."""
        require_home_owner(current_call())
        if self._config.database_url is not None:
            raise OperatorMistake(_ON_POSTGRES, hint="Restore with the tools of the database server.")
        chosen = await self._choose(name)

        async def put_back() -> Path:
            return await asyncio.to_thread(backup.restore, chosen, self._config.file)

        kept = await self._opening.replace(put_back)
        await self._opening.library()  # says at once when this backup is no use either
        return Restored(name=chosen.name, made_at=made_at(chosen), kept=str(kept))

    async def _choose(self, name: str | None) -> Path:
        found = await asyncio.to_thread(self._found)
        chosen = next((path for path in found if name is None or path.name == name), None)
        if chosen is None:
            missing = "There is no backup of the memory yet." if name is None else f"There is no backup called {name}."
            raise NotFound(missing, hint=f"Backups are kept in {self._config.backups}.", field="name")
        return chosen

    def _found(self) -> list[Path]:
        return trouble.backups_of(self._config.file, self._config.backups)[::-1]


def made_at(path: Path) -> datetime | None:
    """When a backup was made, by its name: a copied file has another date."""
    try:
        return datetime.strptime(path.stem.rsplit("-", 1)[-1], backup.STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None


def _line(path: Path) -> BackupLine:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        size = 0  # removed this moment, because a newer one was made
    return BackupLine(name=path.name, made_at=made_at(path), size_bytes=size)
