"""Fixtures for the hub's tests: a shared hub for what does not change it, a hub of its own for what does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

from annabelle.core.home import Home
from annabelle.core.messages import now
from hub.hubs import HubProcess, fresh_home
from support.scripted_model import ScriptedServer


@pytest.fixture(scope="session")
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _forgotten_rules(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test told the model, which all tests share, ends with the test."""
    model = request.getfixturevalue("model") if "model" in request.fixturenames else None
    yield
    if isinstance(model, ScriptedServer):
        model.rules()


@pytest.fixture(scope="session")
def shared_hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[HubProcess]:
    """A running hub for tests that only talk to it."""
    home = fresh_home(tmp_path_factory.mktemp("shared-hub"))
    # Learning from a rested chat would ask the model amid another test.
    hub = HubProcess(home, model.openai_url, FACT_EXTRACTION_ENABLED="false").start()
    yield hub
    hub.end()


@pytest.fixture
def noon(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Where the ledger's clock stands, so that no midnight falls into what the test spends."""
    noon = now().replace(hour=12)
    for place in ("annabelle.hub.costs.ledger", "annabelle.store.ledger", "hub.cost_house"):
        monkeypatch.setattr(f"{place}.now", lambda: noon)
    return noon


@pytest.fixture
def make_hub(home: Home, model: ScriptedServer) -> Iterator[Callable[..., HubProcess]]:
    """Makes hubs on this test's home; whatever still runs at the end is stopped."""
    made: list[HubProcess] = []

    def make(**settings: str) -> HubProcess:
        hub = HubProcess(home, model.openai_url, **settings)
        made.append(hub)
        return hub

    yield make
    for hub in made:
        hub.end()
