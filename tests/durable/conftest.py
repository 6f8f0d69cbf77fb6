"""A durable engine on each database, and processes that are killed in the middle of a workflow."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from annabelle.durable.engine import Durable
from annabelle.store.database import sqlite_url
from support import timing
from support.postgres import early, postgres, postgres_url  # noqa: F401  fixtures

WORKER = Path(__file__).parent / "worker.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    early(items)


@pytest.fixture(params=["sqlite", "postgresql"])
def flows_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the engine keeps its workflows."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "flows.db")
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def database_url(flows_url: str, tmp_path: Path) -> str:
    """Where the hub keeps its tables: a file of its own, or the same server."""
    return sqlite_url(tmp_path / "annabelle.db") if flows_url.startswith("sqlite") else flows_url


MakeDurable = Callable[[], Durable]


@pytest.fixture
async def make_durable(flows_url: str) -> AsyncIterator[MakeDurable]:
    made: list[Durable] = []

    def make() -> Durable:
        made.append(Durable(name="hub-tests", executor_id="hub", database_url=flows_url, schema="flows"))
        return made[-1]

    yield make
    for durable in made:
        await durable.close()


class WorkerForks:
    """One process that has imported everything, and forks a worker at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._pid = 0

    def start(self, request: dict[str, object]) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._pid = self._read_number(timing.seconds(60))
        return self._pid

    def ended(self, seconds: float = 0.0) -> bool:
        return bool(select.select([self._process.stdout], [], [], seconds)[0])

    def wait(self, seconds: float) -> int:
        """The exit code of the worker; one that takes too long is killed."""
        if not self.ended(seconds):
            os.kill(self._pid, signal.SIGKILL)
            raise AssertionError(f"the worker did not end within {seconds:g} s")
        return self._read_number(seconds)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timing.seconds(10))
        self._process.stdout.close()

    def _read_number(self, seconds: float) -> int:
        assert self._process.stdout is not None
        assert self.ended(seconds), "the workers' parent does not answer"
        return int(self._process.stdout.readline())


class Worker:
    """A real process that runs workflows, and the file in which it notes every effect."""

    def __init__(self, worker_forks: WorkerForks, flows_url: str, database_url: str, folder: Path) -> None:
        self._worker_forks = worker_forks
        self._arguments = [flows_url, database_url]
        self._witness = folder / "witness.jsonl"
        self._log = folder / "worker.log"
        self._failpoints = folder / "failpoints"
        self._failpoints.mkdir(exist_ok=True)

    def arm(self, name: str) -> None:
        (self._failpoints / name).touch()

    def run(self, *command: str, timeout: float = 60) -> int:
        """The exit code; -9 when it was killed."""
        self._start(*command)
        return self._worker_forks.wait(timing.seconds(timeout))

    def run_and_kill(self, *command: str, after_effects: int, timeout: float = 60) -> None:
        """Kill it from outside as soon as so many effects are on the witness's list."""
        pid = self._start(*command)
        try:
            end = _deadline(timeout)
            while len(self.effects()) < after_effects and not self._worker_forks.ended() and not end():
                time.sleep(0.001)
        finally:
            if not self._worker_forks.ended():
                os.kill(pid, signal.SIGKILL)
            self._worker_forks.wait(timing.seconds(10))

    def _start(self, *command: str) -> int:
        arguments = [*self._arguments, str(self._witness), *command]
        environment = {**os.environ, "ANNABELLE_FAILPOINTS": str(self._failpoints)}
        return self._worker_forks.start({"arguments": arguments, "environment": environment, "log": str(self._log)})

    def effects(self) -> list[dict[str, object]]:
        if not self._witness.exists():
            return []
        return [json.loads(line) for line in self._witness.read_text().splitlines() if line.endswith("}")]

    def names(self) -> list[str]:
        return [str(effect["name"]) for effect in self.effects()]

    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""


def _deadline(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + timing.seconds(seconds)
    return lambda: time.monotonic() > end


@pytest.fixture(scope="module")
def worker_forks() -> Iterator[WorkerForks]:
    made = WorkerForks()
    yield made
    made.close()


@pytest.fixture
def worker(worker_forks: WorkerForks, flows_url: str, database_url: str, tmp_path: Path) -> Worker:
    return Worker(worker_forks, flows_url, database_url, tmp_path)
