"""A durable engine on each database, and processes that are killed in the middle of a workflow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
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


class Worker:
    """A real process that runs workflows, and the file in which it notes every effect."""

    def __init__(self, flows_url: str, database_url: str, folder: Path) -> None:
        self._arguments = [flows_url, database_url]
        self._witness = folder / "witness.jsonl"
        self._log = folder / "worker.log"
        self._failpoints = folder / "failpoints"
        self._failpoints.mkdir(exist_ok=True)

    def arm(self, name: str) -> None:
        (self._failpoints / name).touch()

    def run(self, *command: str, timeout: float = 60) -> int:
        """The exit code; -9 when it was killed."""
        with self._log.open("ab") as log:
            return subprocess.run(
                [sys.executable, str(WORKER), *self._arguments, str(self._witness), *command],
                env={**os.environ, "ANNABELLE_FAILPOINTS": str(self._failpoints)},
                stdout=log,
                stderr=log,
                timeout=timing.seconds(timeout),
            ).returncode

    def run_and_kill(self, *command: str, after_effects: int, timeout: float = 60) -> None:
        """Kill it from outside as soon as so many effects are on the witness's list."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(WORKER), *self._arguments, str(self._witness), *command], stdout=log, stderr=log
            )
        try:
            end = _deadline(timeout)
            while len(self.effects()) < after_effects and process.poll() is None and not end():
                os.sched_yield()
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(timing.seconds(10))

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


@pytest.fixture
def worker(flows_url: str, database_url: str, tmp_path: Path) -> Worker:
    return Worker(flows_url, database_url, tmp_path)
