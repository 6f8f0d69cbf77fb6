"""Backups of a database, made before every migration, and how to restore them (I-19)."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path

from annabelle.core.errors import NotFound, StorageTrouble
from annabelle.store.engine import driver, list_backups
from annabelle.store.file_lock import FileLock

KEEP_BACKUPS = 5
BACKUP_TIME_FORMAT = "%Y%m%dT%H%M%S%f"


def backup_time(path: Path) -> datetime | None:
    """When a backup was made, by its name: copying changes a file's date."""
    try:
        return datetime.strptime(path.stem.rsplit("-", 1)[-1], BACKUP_TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None


def copy_file(file: Path, folder: Path, revision: str, at: datetime) -> Path:
    """Copies a SQLite database including its WAL. A crash leaves no partial backup."""
    target = folder / f"{file.stem}-{revision}-{at.strftime(BACKUP_TIME_FORMAT)}{file.suffix}"
    temporary = target.with_name(f".{target.name}.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for half in folder.glob(f".{file.stem}-*{file.suffix}.part"):
            half.unlink(missing_ok=True)  # of a killed copy: a file has one owner, so no other copy is running
        _copy_database(file, temporary)
        temporary.replace(target)
    except (OSError, driver.Error) as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StorageTrouble(
            f"The backup of {file.name} could not be written to {folder}: {error}.",
            hint="Free some space; the database was not touched.",
        ) from error
    for old in list_backups(file, folder)[:-KEEP_BACKUPS]:
        old.unlink(missing_ok=True)
    return target


def restore_file(backup: Path, file: Path) -> Path:
    """Replaces the database by a backup. Returns where the old one is kept: `<name>.replaced` beside it."""
    if not backup.is_file():
        raise NotFound(f"There is no backup at {backup}.")
    lock = FileLock(file)
    lock.acquire()
    try:
        fresh = file.with_name(f".{file.name}.restored")
        fresh.unlink(missing_ok=True)
        _copy_database(backup, fresh)
        kept = _free_path(file.with_name(f"{file.name}.replaced"))
        for suffix in ("", "-wal", "-shm"):
            # The WAL belongs to the old file and moves with it; it is never deleted.
            with contextlib.suppress(FileNotFoundError):
                file.with_name(file.name + suffix).replace(kept.with_name(kept.name + suffix))
        fresh.replace(file)
    except (OSError, driver.Error) as error:
        raise StorageTrouble(f"The backup {backup} could not be restored: {error}.") from error
    finally:
        lock.release()
    return kept


def _free_path(path: Path) -> Path:
    """Returns the first free one of `<name>`, `<name>-2`, …, so that trying several backups loses none."""
    number, unused = 1, path
    while unused.exists():
        number += 1
        unused = path.with_name(f"{path.name}-{number}")
    return unused


def _copy_database(source: Path, target: Path) -> None:
    with contextlib.closing(open_read_only(source)) as reading:
        copy_connection(reading, target)


def open_read_only(file: Path) -> driver.Connection:
    """Opens a database that another process may be writing. The caller closes it."""
    return driver.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)


def copy_connection(reading: driver.Connection, target: Path) -> None:
    """Copies what the connection sees, its open transaction if it has one, into a file, and checks the copy."""
    with contextlib.closing(driver.connect(str(target))) as writing:
        reading.backup(writing)
        # A backup is a single file, so that moving it cannot lose a WAL.
        writing.execute("PRAGMA journal_mode=DELETE")
        trouble = writing.execute("PRAGMA quick_check(1)").fetchone()
        if trouble != ("ok",):
            raise driver.DatabaseError(f"the copy is damaged: {trouble}")
    target.chmod(0o600)
    sync_file(target)


def sync_file(path: Path) -> None:
    """Writes a file or the entries of a folder through to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
