"""Copies of a database, made before every migration and kept a while, and the way back (I-19)."""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from annabelle.core.errors import NotFound, StorageTrouble
from annabelle.store.driver import driver
from annabelle.store.lock import FileLock
from annabelle.store.tables import metadata
from annabelle.store.trouble import backups_of

KEEP = 5
_STAMP = "%Y%m%dT%H%M%S%f"


def copy_file(file: Path, folder: Path, revision: str, at: datetime) -> Path:
    """Copy a SQLite database with everything its WAL holds. A crash half-way leaves no backup, never half of one."""
    target = folder / f"{file.stem}-{revision}-{at.strftime(_STAMP)}{file.suffix}"
    temporary = target.with_name(f".{target.name}.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        _copy(file, temporary)
        temporary.replace(target)
    except (OSError, driver.Error) as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StorageTrouble(
            f"The backup before the upgrade could not be written to {folder}: {error}.",
            hint="Free some space; the database was not touched.",
        ) from error
    for old in backups_of(file, folder)[:-KEEP]:
        old.unlink(missing_ok=True)
    return target


def restore(backup: Path, file: Path) -> None:
    """Put a backup in the place of the database. What was there is kept beside it as `<name>.replaced`."""
    if not backup.is_file():
        raise NotFound(f"There is no backup at {backup}.")
    lock = FileLock(file)
    lock.acquire()
    try:
        fresh = file.with_name(f".{file.name}.restored")
        fresh.unlink(missing_ok=True)
        _copy(backup, fresh)
        for suffix in ("", "-wal", "-shm"):
            # The WAL moves along with the file it belongs to; it is never deleted.
            with contextlib.suppress(FileNotFoundError):
                file.with_name(file.name + suffix).replace(file.with_name(f"{file.name}.replaced{suffix}"))
        fresh.replace(file)
    except (OSError, driver.Error) as error:
        raise StorageTrouble(f"The backup {backup} could not be restored: {error}.") from error
    finally:
        lock.release()


def _copy(source: Path, target: Path) -> None:
    with (
        contextlib.closing(driver.connect(f"file:{source}?mode=ro", uri=True)) as reading,
        contextlib.closing(driver.connect(str(target))) as writing,
    ):
        reading.backup(writing)
        # A backup is one plain file: whoever moves it can not lose a WAL.
        writing.execute("PRAGMA journal_mode=DELETE")
        trouble = writing.execute("PRAGMA quick_check(1)").fetchone()
        if trouble != ("ok",):
            raise driver.DatabaseError(f"the copy is damaged: {trouble}")
    target.chmod(0o600)
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def copy_schema(connection: Connection, revision: str, at: datetime) -> str:
    """Copy our PostgreSQL tables into a schema of their own, inside the migration's transaction."""
    schema = f"backup_{revision}_{at.strftime(_STAMP).lower()}"
    connection.execute(text(f'CREATE SCHEMA "{schema}"'))
    for table in _our_tables(connection):
        connection.execute(text(f'CREATE TABLE "{schema}"."{table}" AS TABLE "{table}"'))
    for old in schemas(connection)[:-KEEP]:
        connection.execute(text(f'DROP SCHEMA "{old}" CASCADE'))
    return schema


def schemas(connection: Connection) -> list[str]:
    """The backups in a PostgreSQL database, oldest first."""
    names = [name for name in inspect(connection).get_schema_names() if name.startswith("backup_")]
    return sorted(names, key=lambda name: name.rsplit("_", 1)[-1])


def _our_tables(connection: Connection) -> list[str]:
    present = set(inspect(connection).get_table_names())
    return [name for name in ("alembic_version", *(table.name for table in metadata.sorted_tables)) if name in present]
