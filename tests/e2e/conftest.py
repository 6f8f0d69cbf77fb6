"""Fixtures for bad days: one house with bad neighbours for what does not change it, hubs of their own for the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from annabelle.core.home import Home
from e2e.days import MakeHub
from e2e.disks import Disk, small_disk
from hub.hubs import HubProcess, fresh_home
from support.postgres import early
from support.scripted_model import ScriptedServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    early(items)


@pytest.fixture(scope="session")
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def rules(model: ScriptedServer) -> Iterator[ScriptedServer]:
    """The model, to be given rules that end with the test."""
    model.clear()
    yield model
    model.rules()


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[HubProcess]:
    """A running hub for tests that leave it as they found it."""
    hub = HubProcess(
        fresh_home(tmp_path_factory.mktemp("house")),
        model.openai_url,
        LLM_TIMEOUT_SECONDS="1",
        LLM_BREAKER_ERRORS="1000",
        # It lives as long as all tests, and learning from a rested chat would ask the model amid one of them.
        FACT_EXTRACTION_ENABLED="false",
    ).start()
    yield hub
    hub.end()


@pytest.fixture
def make_hub(home: Home, model: ScriptedServer) -> Iterator[MakeHub]:
    """Makes hubs on this test's home, or another; whatever still runs at the end is stopped."""
    made: list[HubProcess] = []

    def make(at: Home | None = None, **settings: str) -> HubProcess:
        made.append(HubProcess(at or home, model.openai_url, **settings))
        return made[-1]

    yield make
    for hub in made:
        hub.end()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A small disk that can be filled and freed."""
    with small_disk(tmp_path / "disk") as made:
        yield made
