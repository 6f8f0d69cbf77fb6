"""Turns what a database driver says into one sentence that names what to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from annabelle.core.errors import AnnabelleError, StorageTrouble, Unavailable

_RETRIED_STATES = frozenset({"40001", "40P01"})  # serialization failure, deadlock
_FULL_STATES = frozenset({"53100", "53200"})  # disk full, out of memory


@dataclass(frozen=True, slots=True)
class Place:
    """Where a database is, for messages about it."""

    url: URL
    backups: Path | None = None
    way_back: str | None = None
    """The command that restores a backup, where there is one."""

    @property
    def file(self) -> Path | None:
        return Path(self.url.database) if self.url.drivername == "sqlite" and self.url.database else None

    @property
    def name(self) -> str:
        return str(self.file) if self.file else f"{self.url.host or 'localhost'}:{self.url.port or 5432}"

    def newest_backup(self) -> Path | None:
        found = backups_of(self.file, self.backups) if self.file and self.backups else []
        return found[-1] if found else None


def backups_of(file: Path, folder: Path) -> list[Path]:
    """The backups of one database file, oldest first."""
    return sorted(folder.glob(f"{file.stem}-*{file.suffix}"), key=lambda path: path.name.rsplit("-", 1)[-1])


def sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def is_passing(error: DBAPIError) -> bool:
    """Whether the same transaction, run again, can succeed."""
    return sqlstate(error) in _RETRIED_STATES


def describe(error: DBAPIError | PoolTimeout, place: Place) -> AnnabelleError | None:
    """The error to show instead; None when it is a mistake of ours that nobody else can act on."""
    if isinstance(error, PoolTimeout):
        return Unavailable(f"The database {place.name} is too busy.", hint="Try again in a moment.")
    return _describe_sqlite(error, place) if place.file else _describe_postgres(error, place)


def read_only(place: Place) -> StorageTrouble:
    return StorageTrouble(
        f"The database {place.name} is read-only.", hint="Give whoever runs Annabelle the right to write it."
    )


def damaged(place: Place) -> StorageTrouble:
    """What to say, and what to do, when the file is not a sound database any more."""
    backup = place.newest_backup()
    if backup is None:
        hint = "There is no backup; move the file away to start anew."
    elif place.way_back is None:
        hint = f"Restore the newest backup, {backup}."
    else:
        hint = f"Restore the newest backup, {backup}, with `{place.way_back}`."
    return StorageTrouble(f"The database {place.name} is damaged.", hint=hint)


def _describe_sqlite(error: DBAPIError, place: Place) -> StorageTrouble | None:
    name, said = place.name, str(getattr(error.orig, "sqlite_errorname", ""))
    if said.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return damaged(place)
    if said == "SQLITE_FULL":
        return StorageTrouble(
            f"The disk is full: {name} could not be written.", hint="Free some space; nothing is lost."
        )
    if said.startswith("SQLITE_READONLY"):
        return read_only(place)
    if said.startswith("SQLITE_CANTOPEN"):
        return StorageTrouble(f"The database {name} can not be opened.", hint="Check its folder and permissions.")
    if said.startswith("SQLITE_IOERR"):
        return StorageTrouble(f"The disk failed while {name} was used.", hint="Check the disk, then start again.")
    if said.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StorageTrouble(f"The database {name} is locked by another program.", hint="Close what has it open.")
    return None


def _describe_postgres(error: DBAPIError, place: Place) -> AnnabelleError | None:
    state = sqlstate(error)
    if state in _FULL_STATES:
        return StorageTrouble(
            f"The database server {place.name} has no space left.", hint="Free some; nothing is lost."
        )
    if state in ("28P01", "28000", "3D000"):
        return StorageTrouble(
            f"The database server {place.name} refused: {_first_line(error)}.", hint="Check DATABASE_URL."
        )
    if error.connection_invalidated or (state is None and type(error).__name__ == "OperationalError"):
        return Unavailable(
            f"The database server {place.name} can not be reached: {_first_line(error)}.",
            hint="Start it, or check DATABASE_URL.",
        )
    if state in ("57P01", "57P02", "57P03", "57014", "55P03", "08006"):
        return Unavailable(f"The database server {place.name} is not ready: {_first_line(error)}.", hint="Try again.")
    return None


def _first_line(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"
