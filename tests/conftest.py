"""What every test has: a home of its own, an environment without keys, no network, no process left over."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from annabelle.core.home import HOME_VARIABLE, Home
from annabelle.core.secrets.redactor import is_secret_name
from annabelle.core.settings import Settings
from annabelle.store.database import Database, sqlite_url
from annabelle.toolbox.process import fork_launcher
from support import network, once
from support.few_servers import FEW_SERVERS
from support.reaper import Reaper
from support.tiers import QUICK_EXAMPLES, QUICK_PROFILE, is_slow, try_fewer_examples
from support.timing import seconds
from support.warm_process import TEMPLATE

GRACE_SECONDS = 5.0
_CHILDREN = Path("/proc/self/task") / str(os.getpid()) / "children"
STUCK_SECONDS = 60.0
NETWORK_VARIABLE = "ANNABELLE_TEST_NETWORK"
EXTERNAL_VARIABLE = "ANNABELLE_TEST_EXTERNAL_BIN"
FAILED = pytest.StashKey[bool]()
_reaper = Reaper()
_numbers = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    """Plain `pytest` has no namespace around it, so the guard comes in; `make test` brings the namespace."""
    os.environ.update(FEW_SERVERS)
    once.do_once()
    fork_launcher.start_forkserver = TEMPLATE.start_forkserver
    gc.disable()  # until everything is collected
    # How long an example takes says something about the machine, not about the program.
    settings.register_profile("full", deadline=None)
    settings.register_profile(QUICK_PROFILE, deadline=None, max_examples=QUICK_EXAMPLES)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "full"))
    # A shell starts what runs in its background deaf to Ctrl-C, and so would be every program a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A program that ignores SIGHUP, as one below `nohup` does, starts only programs that ignore it.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        _reaper.start()
    os.environ.setdefault(EXTERNAL_VARIABLE, str(config.rootpath / ".venv-external" / "bin"))
    if os.environ.get(NETWORK_VARIABLE) != "namespace":
        os.environ[NETWORK_VARIABLE] = "guard"
        network.guard()
        guard_folder = str(Path(network.__file__).parent / "loopback_only")
        if guard_folder not in os.environ.get("PYTHONPATH", ""):
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [guard_folder, os.environ.get("PYTHONPATH")]))


def pytest_unconfigure() -> None:
    _reaper.stop()


def pytest_report_header() -> str:
    return f"network: loopback only, kept by a {os.environ[NETWORK_VARIABLE]}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Scale the bound on a test, its own or the common one, and kill a run that is stuck after a test timed out."""
    mark = item.get_closest_marker("timeout")
    bound = mark.args[0] if mark else float(item.config.getini("timeout"))
    scaled = seconds(bound)
    item.add_marker(pytest.mark.timeout(scaled), append=False)
    _reaper.expect_within(scaled + seconds(STUCK_SECONDS))
    try:
        return (yield)
    finally:
        _reaper.expect_within(None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the tests into tiers. A test that names many requirements proves none of them well.

    Files that start processes come first: they wait, and at the end no other worker would compute meanwhile.
    """
    quick = settings.get_current_profile_name() == QUICK_PROFILE
    for item in items:
        if is_slow(item):
            item.add_marker(pytest.mark.slow)
        if quick:
            try_fewer_examples(item)
        for mark in item.iter_markers():
            if mark.name in ("req", "incident") and not 1 <= len(mark.args) <= 4:
                raise pytest.UsageError(f"{item.nodeid}: @{mark.name} takes one to four ids")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Eleven thousand collected tests stay to the end: looking through them for garbage again and again is wasted."""
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture
def test_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where this test may write. Nobody has made it yet; what a failed test wrote there stays.

    pytest's own looks through the folders of all tests before, and leaves them behind.
    """
    name = re.sub(r"\W", "_", request.node.name)[:25]
    folder = tmp_path_factory.getbasetemp() / f"{next(_numbers)}-{name}"
    yield folder
    if not request.node.stash.get(FAILED, False):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def tmp_path(test_folder: Path) -> Path:
    test_folder.mkdir(exist_ok=True)  # a home may be in it
    return test_folder


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, test_folder: Path) -> None:
    """No key, token or setting of whoever runs the tests reaches one; a forgotten home is never the real one."""
    settings = {name.upper() for name in Settings.model_fields}
    for name in list(os.environ):
        if name.upper() in settings or (is_secret_name(name) and not name.startswith("PYTEST")):
            monkeypatch.delenv(name)
    monkeypatch.setenv(HOME_VARIABLE, str(test_folder / "annabelle-home"))


@pytest.fixture
def home(request: pytest.FixtureRequest, clean_environment: None) -> Iterator[Home]:
    """A fresh home that `ANNABELLE_HOME` points at. No process that works in it may outlive the test."""
    made = Home.from_environment().prepare()
    yield made
    if not request.node.get_closest_marker("slow") and not TEMPLATE.has_worked_in(made.root):
        return  # it started no process
    left = _processes_in(made.root)
    _expect_gone(left, f"still work in the home of a finished test ({made.root})")


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The hub's tables without a row, made once: a copy costs a fifth of making them."""
    file = tmp_path_factory.mktemp("empty") / "annabelle.db"

    async def make() -> None:
        await (await Database.open(sqlite_url(file))).close()

    asyncio.run(make())
    return file


@pytest.fixture
async def database(home: Home, empty_database: Path) -> AsyncIterator[Database]:
    """The hub's database in this test's home, empty."""
    shutil.copy(empty_database, home.database_file)
    opened = await Database.open(sqlite_url(home.database_file), backups=home.backups)
    yield opened
    await opened.close()


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Every process a test starts is gone when it ends; what wider fixtures started may stay."""
    before = _descendants()
    yield
    left = _descendants() - before
    _expect_gone([process for process in left if not _descends_from(process, before)], "outlived their test")


def _descendants() -> set[psutil.Process]:
    """Everything this process has started, but for the template. psutil would read about every process there is."""
    if not _CHILDREN.exists():
        return {process for process in psutil.Process().children(recursive=True) if process.pid != TEMPLATE.pid}
    found, waiting = set[psutil.Process](), [os.getpid()]
    while waiting:
        with contextlib.suppress(psutil.Error, OSError):  # one may just have ended
            tasks = f"/proc/{waiting.pop()}/task"
            for thread in os.listdir(tasks):
                below = [int(pid) for pid in Path(tasks, thread, "children").read_text().split()]
                waiting += below
                found.update(psutil.Process(pid) for pid in below if pid != TEMPLATE.pid)
    return found


def _processes_in(root: Path) -> list[psutil.Process]:
    """Everything that works in this home."""
    wanted = f"{HOME_VARIABLE}={root}\0".encode()
    found = list[psutil.Process]()
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            if TEMPLATE.works_in(pid, root) or (pid != os.getpid() and wanted in _environment(pid)):
                found.append(psutil.Process(pid))
    return found


def _environment(pid: int) -> bytes:
    if sys.platform == "linux":
        return Path(f"/proc/{pid}/environ").read_bytes()
    return "".join(f"{name}={value}\0" for name, value in psutil.Process(pid).environ().items()).encode()


def _descends_from(process: psutil.Process, elders: set[psutil.Process]) -> bool:
    try:
        return any(parent in elders for parent in process.parents())
    except psutil.Error:
        return True  # already gone


def _expect_gone(processes: list[psutil.Process], complaint: str) -> None:
    """Give them a moment to end by themselves; what stays is killed, named, and fails the test."""
    _gone, alive = psutil.wait_procs(
        [process for process in processes if _alive(process)], timeout=seconds(GRACE_SECONDS)
    )
    named = []
    for process in alive:
        if _alive(process):
            with process.oneshot():
                named.append(f"{process.pid} {' '.join(process.cmdline())[:200]}")
            process.kill()
    if named:
        pytest.fail(f"Processes {complaint}: {'; '.join(named)}", pytrace=False)


def _alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
