"""Backs up a whole home into one file, while Annabelle runs (BEY-06).

Left out are models, caches, logs, earlier backups and what belongs to a running process. On PostgreSQL the tables are
written as JSON lines; the workflows are left out, because a start takes up unfinished messages from the tables.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from dotenv.parser import parse_stream
from pydantic import BaseModel
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from annabelle.core.errors import Conflict, NotFound, StorageTrouble, explain_os_error
from annabelle.core.failpoints import failpoint
from annabelle.core.home import TEMPORARY_NAME, Home
from annabelle.core.result_text import format_size
from annabelle.core.secrets.redactor import Redactor, is_secret_name, passwords_in_url
from annabelle.core.settings import Settings
from annabelle.store.backup import copy_connection, open_read_only, sync_file
from annabelle.store.engine import DatabaseLocation, describe_error, driver, make_engine, parse_url
from annabelle.store.file_lock import open_beside_locks
from annabelle.store.home_archive import CHUNK_BYTES, ArchiveManifest, ArchiveWriter
from annabelle.store.memory.tables import MEMORY_PLAN
from annabelle.store.schema_migration import HUB_PLAN, list_tables, read_revision

PLANS = {"hub": HUB_PLAN, "memory": MEMORY_PLAN}
HOME_FOLDER, TABLES_FOLDER = "home/", "tables/"
FAILPOINTS = ("backup.begun", "backup.databases_written", "backup.files_written", "backup.before_rename")
# A dump takes longer than a request may.
NO_TIMEOUTS = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
_ROWS_AT_ONCE = 500
_NIGHTLY, _REQUESTED = "home-", "manual-"
_SQLITE_HEADER = b"SQLite format 3\0"
_SIDE_FILES = ("-wal", "-shm", "-journal", ".lock")

Progress = Callable[[int, int], None]
"""Is told how many bytes were read, and how many there are."""


class BackupReport(BaseModel):
    file: str
    size_bytes: int
    files: int
    tables: int
    secrets: int | None
    """Number of encrypted files; None if secrets were left out."""
    left_out: list[str]
    """What the home needs and the backup does not hold: files outside of it, links, names that are not text."""


def back_up_home(
    home: Home, target: Path, settings: Settings, *, passphrase: str | None, force: bool, progress: Progress
) -> BackupReport:
    """Writes a backup. The file appears when it is complete; a failure leaves the old one, if there was one."""
    home, target = Home(home.root.resolve()), target.expanduser().parent.resolve() / target.name
    hint = "Free some space or choose another place; nothing was changed."
    with explain_os_error(StorageTrouble, f"The backup {target} could not be written", hint=hint):
        _refuse_existing(target, force)
        with working_folder(target.parent, ".annabelle-backup") as folder:
            try:
                report = _write_archive(home, folder, target, settings, passphrase, progress)
            except driver.Error as error:
                raise StorageTrouble(f"The backup {target} could not be written: {error}.", hint=hint) from error
            _refuse_existing(target, force)
            failpoint(FAILPOINTS[3])
            (folder / "archive").replace(target)
        sync_file(target.parent)
    return report


def back_up_nightly(home: Home, settings: Settings, at: datetime) -> str:
    """Writes a backup without secrets beside the earlier ones, and removes the oldest; returns what it did."""
    target = home.backups / f"{_NIGHTLY}{at:%Y%m%d-%H%M%S}.zip"
    report = _back_up_inside(home, settings, target, force=True)
    for old in sorted(home.backups.glob(f"{_NIGHTLY}*.zip"))[: -settings.backup_keep]:
        old.unlink(missing_ok=True)
    return f"Backed up to {target.name} ({format_size(report.size_bytes)})."


def back_up_on_request(home: Home, settings: Settings, at: datetime) -> BackupReport:
    """Writes a backup without secrets beside the nightly ones; it stays until somebody deletes it."""
    return _back_up_inside(home, settings, home.backups / f"{_REQUESTED}{at:%Y%m%d-%H%M%S}.zip", force=False)


def _back_up_inside(home: Home, settings: Settings, target: Path, *, force: bool) -> BackupReport:
    home.backups.mkdir(parents=True, exist_ok=True)
    return back_up_home(home, target, settings, passphrase=None, force=force, progress=lambda _done, _all: None)


def list_backups(home: Home) -> list[Path]:
    """The backups of the whole home that are kept in it, oldest first."""
    return sorted(home.backups.glob("*.zip"), key=lambda path: path.stat().st_mtime)


def _refuse_existing(target: Path, force: bool) -> None:
    if target.is_dir() or (target.exists() and not force):
        raise Conflict(f"{target} is there already.", hint="Choose another name, or replace the file with --force.")


@contextmanager
def working_folder(parent: Path, prefix: str) -> Generator[Path]:
    """A private folder that is removed at the end. One that a killed process left is removed by the next."""
    parent.mkdir(parents=True, exist_ok=True)
    for old in parent.glob(f"{glob.escape(prefix)}.*.part"):
        with contextlib.suppress(OSError), _locked_folder(old) as free:
            if free:
                shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}.", suffix=".part", dir=parent))
    with _locked_folder(folder):
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked_folder(folder: Path) -> Generator[bool]:
    """Whether the folder could be locked. The kernel releases it when its process dies."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def _write_archive(
    home: Home, folder: Path, target: Path, settings: Settings, passphrase: str | None, progress: Progress
) -> BackupReport:
    url = find_postgres(settings.database_url.get_secret_value() if settings.database_url is not None else None)
    files, left_out = list_content(home, skipped={target, folder})
    if not files:
        raise NotFound(f"There is nothing to back up in {home.root}.")
    left_out += _list_outside(home, settings)
    manifest = ArchiveManifest(database="sqlite" if url is None else "postgresql", left_out=left_out)
    total, done = sum(file.stat().st_size for file in files if file.exists()), 0

    def count(chunks: Iterable[bytes]) -> Iterator[bytes]:
        nonlocal done
        for chunk in chunks:
            done += len(chunk)
            progress(done, max(total, done))
            yield chunk

    secrets = 0
    writer = ArchiveWriter(folder / "archive", manifest, passphrase)
    (folder / "archive").chmod(0o600)
    failpoint(FAILPOINTS[0])
    try:
        with _open_snapshots(home, files) as databases:
            for file, reading in databases.items():
                copy = folder / "database"
                copy_connection(reading, copy)
                manifest.revisions |= _read_revisions(copy)
                with copy.open("rb") as stream:
                    writer.add(_entry_path(home, file), count(read_chunks(stream)), file.stat())
                copy.unlink()
        if url is not None:
            manifest.revisions = _dump_tables(url, writer)
        failpoint(FAILPOINTS[1])
        for file in (file for file in files if file not in databases):
            try:
                secret, stream = is_secret_file(home, file), file.open("rb")
            except FileNotFoundError:
                continue  # it was rotated or deleted meanwhile
            except OSError as error:
                left_out.append(f"{str(file)!r} ({error.strerror})")
                continue
            with stream:
                about = os.fstat(stream.fileno())
                secrets += secret
                if secret and file == home.settings_file:
                    writer.add(_entry_path(home, file), [_read_public_settings(file)], about)
                if not secret or passphrase is not None:
                    writer.add(_entry_path(home, file), count(read_chunks(stream)), about, secret=secret)
        failpoint(FAILPOINTS[2])
        writer.finish()
    finally:
        writer.abandon()
    sync_file(folder / "archive")
    tables = sum(entry.path.startswith(TABLES_FOLDER) for entry in manifest.entries)
    return BackupReport(
        file=str(target),
        size_bytes=(folder / "archive").stat().st_size,
        files=len(manifest.entries) - tables,
        tables=tables,
        secrets=None if passphrase is None else secrets,
        left_out=left_out,
    )


def find_postgres(url: str | None) -> str | None:
    """The address if it is that of a PostgreSQL database; None if the databases are files."""
    return url if url and parse_url(url).drivername != "sqlite" else None


def _entry_path(home: Home, file: Path) -> str:
    return HOME_FOLDER + file.relative_to(home.root).as_posix()


def read_chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Reads a file up to its size at the start, because a log may grow as fast as it is read."""
    left = os.fstat(stream.fileno()).st_size
    while left > 0 and (chunk := stream.read(min(CHUNK_BYTES, left))):
        left -= len(chunk)
        yield chunk


def list_content(home: Home, skipped: Collection[Path] = ()) -> tuple[list[Path], list[str]]:
    """Lists the files that belong into a backup, and names what can not be in it.

    Links are not followed, because they may lead outside the home.
    """
    files, left_out = list[Path](), list[str]()
    for name, folders, names in os.walk(home.root, onerror=lambda error: left_out.append(repr(error.filename))):
        folder = Path(name)
        folders[:] = sorted(one for one in folders if not _is_skipped_folder(home, folder / one, skipped, left_out))
        for path in (folder / one for one in sorted(names)):
            if path.is_symlink() or not _is_text(str(path)):
                left_out.append(repr(str(path)))
            elif path.is_file() and path not in skipped and not _is_passing(home, path):
                files.append(path)
    return files, left_out


def _is_skipped_folder(home: Home, folder: Path, skipped: Collection[Path], left_out: list[str]) -> bool:
    if folder.is_symlink():
        left_out.append(repr(str(folder)))
        return True
    is_cache = folder.is_relative_to(home.data) and "cache" in folder.name.casefold()
    is_environment = (folder / "pyvenv.cfg").exists()  # of Python: bound to this machine and made again
    return is_cache or is_environment or folder in (home.models, home.backups, home.embedding_cache, *skipped)


def _is_passing(home: Home, path: Path) -> bool:
    """Whether a file belongs to a process: logs other than records, pids, half-written files, those of a database."""
    if TEMPORARY_NAME.fullmatch(path.name):
        return True
    if path.parent == home.run:
        return path != home.history_file
    if path.parent == home.logs:
        return ".jsonl" not in path.name
    sides = (path.with_name(path.name.removesuffix(end)) for end in _SIDE_FILES if path.name.endswith(end))
    return any(_is_own_database(file) for file in sides)


def _is_own_database(file: Path) -> bool:
    """Whether it is a SQLite database that a process of Annabelle has opened: it has a lock beside it."""
    if not file.with_name(f"{file.name}.lock").exists() or not file.is_file():
        return False
    with open_beside_locks(file) as stream:
        return stream.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER


def _is_text(path: str) -> bool:
    with contextlib.suppress(UnicodeEncodeError):
        return bool(path.encode())
    return False


def is_secret_file(home: Home, file: Path) -> bool:
    """Whether a file may only be stored encrypted: it opens Annabelle, an account or a server.

    The audit goes with its key, without which every record would seem to be altered.
    """
    is_audit = file.parent in (home.data, home.logs) and file.name.startswith(home.audit_file.stem)
    files = (home.token_file, home.settings_file, home.forgotten_file, home.config / "external-mcps.json")
    if (
        is_audit
        or file in files
        or any(file.is_relative_to(folder) for folder in (home.connections, home.browser_profiles))
    ):
        return True
    if not file.is_relative_to(home.config):
        return False
    content = file.read_text(encoding="utf-8", errors="replace")
    return Redactor()(content) != content


def _read_public_settings(file: Path) -> bytes:
    """The settings without those that are secret, as they stand in the file."""
    redact = Redactor()
    with file.open(encoding="utf-8", errors="replace") as stream:
        kept = [
            line.original.string
            for line in parse_stream(stream)
            if redact(line.original.string) == line.original.string
            and not is_secret_name(line.key or "")
            and not any(passwords_in_url(line.value or ""))
        ]
    return "".join(kept).encode()


def _list_outside(home: Home, settings: Settings) -> list[str]:
    """What settings keep outside the home. Programs are not data."""
    named = {name: getattr(settings, name) for name in Settings.model_fields if name.endswith("_path")}
    return [
        f"{name.upper()}: {path}"
        for name, path in named.items()
        if path is not None and path.exists() and not path.resolve().is_relative_to(home.root)
        if path.is_dir() or not os.access(path, os.X_OK)
    ]


@contextmanager
def _open_snapshots(home: Home, files: list[Path]) -> Generator[dict[Path, driver.Connection]]:
    """Opens every database as it is at this moment.

    The workflows come first and the hub's tables before the memory. What a later one holds more is known after a kill,
    too: a message whose workflow is not there is started again, and a turn that the memory has is not stored twice.
    """
    first = [home.flows_file, *home.agents.glob("*/turns.db"), home.database_file]
    ordered = [*(file for file in first if file in files), *(file for file in files if file not in first)]
    with ExitStack() as stack:
        opened: dict[Path, driver.Connection] = {}
        for file in ordered:
            if _is_own_database(file):
                opened[file] = stack.enter_context(contextlib.closing(open_read_only(file)))
                opened[file].execute("BEGIN")
                opened[file].execute("SELECT count(*) FROM sqlite_master").fetchone()
        yield opened


def _read_revisions(file: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    with contextlib.closing(open_read_only(file)) as reading:
        for name, plan in PLANS.items():
            with contextlib.suppress(driver.OperationalError):  # another set of tables
                query = f"SELECT version_num FROM {plan.version_table}"  # noqa: S608  a name of ours
                found[name] = str(reading.execute(query).fetchone()[0])
    return found


def _dump_tables(url: str, writer: ArchiveWriter) -> dict[str, str]:
    """Writes the rows of every table as JSON lines, all from one moment. Returns the schema versions."""
    engine = make_engine(url, pool_size=1, read_only=True)
    try:
        with engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection, connection.begin():
            connection.exec_driver_sql(NO_TIMEOUTS)
            for plan in PLANS.values():
                for table in list_tables(connection, plan):
                    if table != plan.version_table:
                        writer.add(f"{TABLES_FOLDER}{table}.jsonl", _read_rows(connection, table))
            found = {name: read_revision(connection, plan) for name, plan in PLANS.items()}
            return {name: revision for name, revision in found.items() if revision is not None}
    except DBAPIError as error:
        raise describe_error(error, DatabaseLocation(parse_url(url))) or error from error
    finally:
        engine.dispose()


def _read_rows(connection: Connection, table: str) -> Iterator[bytes]:
    # The server writes and reads the JSON itself, so that every type comes back as it was.
    query = text(f'SELECT row_to_json(one)::text FROM "{table}" AS one')  # noqa: S608  a name of ours
    for rows in connection.execute(query, execution_options={"yield_per": _ROWS_AT_ONCE}).partitions():
        yield "".join(f"{row[0]}\n" for row in rows).encode()
