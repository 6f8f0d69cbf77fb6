"""Restores a home from a backup: all of it or nothing (BEY-06).

Everything is unpacked and checked beside the home, then both folders change places in one step. A kill leaves the old
home or the new one. On PostgreSQL the tables are replaced in one transaction, which is committed right after that step.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dotenv import dotenv_values
from pydantic import BaseModel
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError

from annabelle.core.errors import (
    AlreadyRunning,
    AnnabelleError,
    Conflict,
    OperatorMistake,
    StorageTrouble,
    explain_os_error,
)
from annabelle.core.failpoints import failpoint
from annabelle.core.home import Home, write_atomically
from annabelle.core.messages import now
from annabelle.core.result_text import format_size
from annabelle.store.backup import BACKUP_TIME_FORMAT
from annabelle.store.engine import DatabaseLocation, describe_error, make_engine, parse_url
from annabelle.store.file_lock import FileLock
from annabelle.store.home_archive import ArchiveReader, damaged_backup, made_by_newer, open_archive
from annabelle.store.home_backup import (
    HOME_FOLDER,
    NO_TIMEOUTS,
    PLANS,
    TABLES_FOLDER,
    Progress,
    find_postgres,
    is_secret_file,
    list_content,
    working_folder,
)
from annabelle.store.hub_lock import HUB_LOCK_KEY
from annabelle.store.schema_migration import insert_rows, list_tables, read_revision, run_revisions, take_snapshot

FAILPOINTS = ("restore.begun", "restore.unpacked", "restore.before_swap", "restore.after_swap", "restore.old_set_aside")
_SPARE_BYTES = 50_000_000
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux
_ROWS_AT_ONCE = 500


class RestoreReport(BaseModel):
    home: str
    made_at: str
    annabelle: str
    """The version that made the backup."""
    files: int
    tables: int
    secrets: int | None
    """Number of restored secret files; None if there are none in the backup, or they were not wanted."""
    replaced: list[str]
    """Where the home and the tables are kept that were there before."""
    left_out: list[str]


def request_restore(home: Home, file: Path) -> None:
    """Let the next start of the hub restore a backup that is kept in the home."""
    with open_archive(file, secrets=False) as archive:
        _check_revisions(archive)
    write_atomically(home.restore_file, file.name)


def restore_requested(home: Home) -> str:
    """Restore the backup that was asked for, once, and say what came of it. Whatever opens Annabelle or an account
    stays as it is now: the backup has nothing of it."""
    name = home.restore_file.read_text(encoding="utf-8")
    home.restore_file.unlink()
    try:
        report = restore_home(home, home.backups / name, passphrase=None, secrets=False, force=True, keep_secrets=True)
    except AnnabelleError as error:
        return f"The backup {name} was not restored. {error.message}"
    before = f" What was there before is kept in {' and '.join(report.replaced)}." if report.replaced else ""
    return f"The backup {name} was restored.{before}"


def restore_home(
    home: Home,
    file: Path,
    *,
    passphrase: str | None,
    secrets: bool,
    force: bool,
    keep_secrets: bool = False,
    progress: Progress = lambda _done, _total: None,
) -> RestoreReport:
    """Replaces the home by a backup, after everything in it was checked. A failure changes nothing."""
    root = home.root.resolve()
    hint = "Nothing was restored. Free some space, or fix the permissions of the folder around the home."
    with (
        open_archive(file, passphrase, secrets=secrets) as archive,
        explain_os_error(StorageTrouble, f"The backup can not be restored to {root}", hint=hint),
        _locked_home(Home(root)) as has_data,
    ):
        _check_revisions(archive)
        if has_data and not force:
            raise Conflict(
                f"There is a home in {root} already.",
                hint="Use --force to put the backup in its place; what is there now is moved aside.",
            )
        with working_folder(root.parent, f".{root.name}.restore") as folder:
            failpoint(FAILPOINTS[0])
            staged = Home(folder / "home")
            count = _unpack(archive, staged, progress)
            if keep_secrets:
                _copy_secrets(Home(root), staged)
            failpoint(FAILPOINTS[1])
            stamp = now().strftime(BACKUP_TIME_FORMAT)
            aside = root.with_name(f"{root.name}.replaced-{stamp}")
            with ExitStack() as undo:
                with _replace_tables(archive, staged, force=force) as snapshots:
                    failpoint(FAILPOINTS[2])
                    _swap_folders(staged.root, root, aside)
                    undo.callback(_swap_back, staged.root, root, aside)
                undo.pop_all()  # the tables are committed
            failpoint(FAILPOINTS[3])
        kept = _set_aside(aside, Home(root), stamp, has_data=has_data)
    manifest = archive.manifest
    return RestoreReport(
        home=str(root),
        made_at=manifest.made_at.isoformat(timespec="seconds"),
        annabelle=manifest.annabelle,
        files=count,
        tables=sum(entry.path.startswith(TABLES_FOLDER) for entry in manifest.entries),
        secrets=len(archive.secrets) if manifest.salt and secrets else None,
        replaced=[*([str(kept)] if kept else []), *snapshots],
        left_out=manifest.left_out,
    )


@contextmanager
def _locked_home(home: Home) -> Generator[bool]:
    """Keeps a hub from starting meanwhile; AlreadyRunning if one runs. Tells whether there is something to lose."""
    if not home.root.exists():
        yield False
        return
    home.run.mkdir(parents=True, exist_ok=True)
    lock = FileLock(home.hub_file)
    try:
        lock.acquire()
    except AlreadyRunning as error:
        raise AlreadyRunning(
            f"Annabelle runs in {home.root}, so nothing was restored.", hint="Stop it first: annabelle down"
        ) from error
    try:
        yield any(list_content(home))
    finally:
        lock.release()


def _check_revisions(archive: ArchiveReader) -> None:
    for name, revision in archive.manifest.revisions.items():
        if name not in PLANS or revision > PLANS[name].newest:
            raise made_by_newer(archive.manifest.annabelle)


def _unpack(archive: ArchiveReader, staged: Home, progress: Progress) -> int:
    """Writes every file of the backup into a new folder. Returns how many there are."""
    free, needed, done, count = shutil.disk_usage(staged.root.parent).free, archive.size_bytes, 0, 0
    if needed + _SPARE_BYTES > free:
        raise StorageTrouble(
            f"The backup needs {format_size(needed)}, and {format_size(free)} are free.",
            hint="Nothing was restored. Free some space first.",
        )
    staged.root.mkdir(mode=0o700)
    for entry, path, chunks in archive.contents(HOME_FOLDER):
        target, count = staged.root / path, count + 1
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            out = target.open("xb")
        except (FileExistsError, NotADirectoryError) as error:
            raise damaged_backup() from error  # one path twice, or below a file
        with out:
            for chunk in chunks:
                out.write(chunk)
                done += len(chunk)
                progress(done, needed)
            out.flush()
            os.fsync(out.fileno())
        target.chmod(entry.mode)
        os.utime(target, (entry.modified, entry.modified))
    return count


def _copy_secrets(home: Home, staged: Home) -> None:
    """Settings, keys, tokens, accounts, people and the audit, as they are now."""
    for file in list_content(home)[0]:
        if file == home.users_file or is_secret_file(home, file):
            target = staged.root / file.relative_to(home.root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)


def _swap_folders(staged: Path, root: Path, aside: Path) -> None:
    """Puts the new home in the old one's place, and the old one at `aside`. Both are seen to happen at once."""
    if not root.exists():
        staged.rename(root)
        return
    staged.rename(aside)
    try:
        _exchange(aside, root)
    except OSError:
        aside.rename(staged)
        raise


def _swap_back(staged: Path, root: Path, aside: Path) -> None:
    if aside.exists():
        _exchange(aside, root)
        aside.rename(staged)
    else:
        root.rename(staged)


def _exchange(one: Path, other: Path) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        here = ctypes.c_int(-100)  # AT_FDCWD: both paths are absolute
        if library.renameat2(here, os.fsencode(one), here, os.fsencode(other), ctypes.c_uint(_EXCHANGE)) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.EINVAL, errno.ENOSYS):  # this file system can not do it
            raise OSError(number, os.strerror(number))
    between = one.with_name(f"{one.name}.old")
    other.rename(between)
    one.rename(other)
    between.rename(one)


def _set_aside(aside: Path, home: Home, stamp: str, *, has_data: bool) -> Path | None:
    """Keeps the old home among the backups of the new one, where forgetting finds it. Models and backups move over."""
    if not aside.exists():
        return None
    old = Home(aside)
    for before, after in ((old.models, home.models), (old.backups, home.backups)):
        if before.exists() and not after.exists():
            before.rename(after)
    failpoint(FAILPOINTS[4])
    if not has_data:
        shutil.rmtree(aside, ignore_errors=True)
        return None
    home.backups.mkdir(exist_ok=True)
    return aside.rename(home.backups / f"replaced-{stamp}")


@contextmanager
def _replace_tables(archive: ArchiveReader, staged: Home, *, force: bool) -> Generator[list[str]]:
    """Replaces the tables on PostgreSQL, committed at the end. Yields the schemas that keep the old ones."""
    url = find_postgres(os.environ.get("DATABASE_URL") or dotenv_values(staged.settings_file).get("DATABASE_URL"))
    kind = "sqlite" if url is None else "postgresql"
    if kind != archive.manifest.database:
        names = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
        raise OperatorMistake(
            f"The backup was made with {names[archive.manifest.database]}, and this install is set to {names[kind]}.",
            hint="Nothing was restored. Set DATABASE_URL in the environment to a PostgreSQL database."
            if kind == "sqlite"
            else "Nothing was restored. Take DATABASE_URL out of the environment.",
        )
    if url is None:
        yield []
        return
    engine = make_engine(url, pool_size=1)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(NO_TIMEOUTS)
            if not connection.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": HUB_LOCK_KEY}):
                raise AlreadyRunning(
                    "Another hub works on the database, so nothing was restored.", hint="Stop it first: annabelle down"
                )
            snapshots = _drop_tables(connection, force=force)
            for name, revision in archive.manifest.revisions.items():
                run_revisions(connection, PLANS[name], revision)
            for _entry, path, chunks in archive.contents(TABLES_FOLDER):
                _load_rows(connection, path.removesuffix(".jsonl"), chunks)
            yield snapshots
    except DBAPIError as error:
        raise describe_error(error, DatabaseLocation(parse_url(url))) or error from error
    finally:
        engine.dispose()


def _drop_tables(connection: Connection, *, force: bool) -> list[str]:
    """Removes the tables, after a snapshot of them, and the workflows, which a start makes again from the tables."""
    snapshots: list[str] = []
    for plan in PLANS.values():
        revision = read_revision(connection, plan)
        if revision is None:
            continue
        if not force:
            raise Conflict(
                "The database that DATABASE_URL names is in use already.",
                hint="Use --force to put the backup in its place; what is there now is kept as a snapshot.",
            )
        snapshots.append(take_snapshot(connection, revision, now(), plan))
        for table in reversed(list_tables(connection, plan)):
            connection.execute(text(f'DROP TABLE "{table}"'))
    inspector = inspect(connection)
    for schema in inspector.get_schema_names():
        if inspector.has_table("workflow_status", schema=schema):
            connection.execute(text(f'DROP SCHEMA "{schema}" CASCADE'))
    return snapshots


def _load_rows(connection: Connection, table: str, chunks: Iterable[bytes]) -> None:
    known = {name for plan in PLANS.values() for name in list_tables(connection, plan)}
    if table not in known:
        raise damaged_backup()
    connection.execute(text("CREATE TEMPORARY TABLE restored_rows (line json) ON COMMIT DROP"))
    for lines in _split_lines(chunks):
        connection.execute(text("INSERT INTO restored_rows VALUES (CAST(:line AS json))"), lines)
    # In one statement, because rows refer to each other.
    source = f'(SELECT one.* FROM restored_rows, json_populate_record(NULL::"{table}", line) AS one) AS found'  # noqa: S608
    insert_rows(connection, table, source)
    connection.execute(text("DROP TABLE restored_rows"))


def _split_lines(chunks: Iterable[bytes]) -> Iterator[list[dict[str, str]]]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        with contextlib.suppress(UnicodeDecodeError):
            for at in range(0, len(lines), _ROWS_AT_ONCE):
                yield [{"line": line.decode()} for line in lines[at : at + _ROWS_AT_ONCE]]
            continue
        raise damaged_backup()
