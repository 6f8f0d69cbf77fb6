"""A durable engine on each database, and processes that are killed in the middle of a workflow."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from annabelle.durable.engine import Durable
from annabelle.store.database import sqlite_url
from support import timing
from support.postgres import early, postgres, postgres_tables_url  # noqa: F401  fixtures
from support.warm_process import TEMPLATE, WarmProcess


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    early(items)


@pytest.fixture(params=["sqlite", "postgresql"])
def flows_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the engine keeps its workflows."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "flows.db")
    return request.getfixturevalue("postgres_tables_url")


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
        return _wait(self._start(*command), timeout)

    def run_and_kill(self, *command: str, after_effects: int, timeout: float = 60) -> None:
        """Kill it from outside as soon as so many effects are on the witness's list."""
        process = self._start(*command)
        try:
            end = _deadline(timeout)
            while self._lines_noted() < after_effects and process.poll() is None and not end():
                time.sleep(0.001)
        finally:
            process.kill()
            _wait(process, 10)

    def _start(self, *command: str) -> WarmProcess:
        arguments = [*self._arguments, str(self._witness), *command]
        environment = {**os.environ, "ANNABELLE_FAILPOINTS": str(self._failpoints)}
        with self._log.open("ab") as log:
            return TEMPLATE.spawn_into("durable.worker", environment, log, arguments)

    def _lines_noted(self) -> int:
        return self._witness.read_bytes().count(b"\n") if self._witness.exists() else 0

    def effects(self) -> list[dict[str, object]]:
        if not self._witness.exists():
            return []
        return [json.loads(line) for line in self._witness.read_text().splitlines() if line.endswith("}")]

    def names(self) -> list[str]:
        return [str(effect["name"]) for effect in self.effects()]

    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""


def _wait(process: WarmProcess, seconds: float) -> int:
    """The exit code; a worker that takes too long is killed."""
    try:
        return process.wait(timing.seconds(seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise AssertionError(f"the worker did not end within {timing.seconds(seconds):g} s") from None


def _deadline(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + timing.seconds(seconds)
    return lambda: time.monotonic() > end


@pytest.fixture
def worker(flows_url: str, database_url: str, tmp_path: Path) -> Worker:
    return Worker(flows_url, database_url, tmp_path)
