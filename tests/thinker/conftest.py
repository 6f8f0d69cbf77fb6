"""What tests of the thinker have: real processes, a fake hub, a scripted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from annabelle.core.contract import AgentProfile, TurnLimits
from annabelle.core.home import Home
from support.postgres import early, postgres, postgres_tables_url, postgres_url
from support.scripted_model import ScriptedServer
from thinker.fake_hub import FakeHub
from thinker.thinkers import Thinker

__all__ = ["postgres", "postgres_tables_url", "postgres_url"]

Start = Callable[..., Thinker]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    early(items)


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as made:
        yield made


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer() as made:
        yield made


@pytest.fixture
def failpoints(tmp_path: Path) -> Path:
    folder = tmp_path / "failpoints"
    folder.mkdir()
    return folder


@pytest.fixture
def settings(model: ScriptedServer, failpoints: Path) -> dict[str, str]:
    """What the hub would hand over: the scripted model as provider, quick retries."""
    return {
        "THINKER_LLM_PROVIDER": "compatible",
        "COMPATIBLE_BASE_URL": model.openai_url,
        "COMPATIBLE_MODEL": "scripted",
        "RETRY_BASE_SECONDS": "0.01",
        "RETRY_IMMEDIATE_SECONDS": "0.01",
        "ANNABELLE_FAILPOINTS": str(failpoints),
    }


@pytest.fixture
def spare(home: Home, tmp_path: Path) -> Iterator[Callable[[], Thinker]]:
    """Makes processes that wait to be adopted."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Thinker(home.root, tmp_path / "stderr.log"))


@pytest.fixture
def start(spare: Callable[[], Thinker], hub: FakeHub, settings: dict[str, str]) -> Start:
    """Starts a ready thinker of the agent `tess`."""

    def started(**limits: float) -> Thinker:
        profile = AgentProfile(agent_id="tess", limits=TurnLimits(**limits))  # pyright: ignore[reportArgumentType]
        return spare().adopt(hub.url, settings, profile)

    return started
