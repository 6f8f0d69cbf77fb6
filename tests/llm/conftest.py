"""What the tests of the model service start from: a scripted server, a ledger in memory, services that get closed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from annabelle.core.contract import AgentProfile
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.llm.service import ModelService
from support.scripted_model import ScriptedServer
from support.scripted_model.service_under_test import Book


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
async def make_service(home: Home, book: Book) -> AsyncIterator[Callable[..., ModelService]]:
    made: list[ModelService] = []

    def make(settings: Settings, **agent: Any) -> ModelService:
        service = ModelService(settings, home, book, AgentProfile(agent_id="annabelle", **agent))
        made.append(service)
        return service

    yield make
    for service in made:
        await service.close()
