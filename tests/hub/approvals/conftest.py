"""A house of its own for each test of questions and answers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from annabelle.core.home import Home
from hub.approvals.house import House, a_house


@pytest.fixture
async def house(home: Home) -> AsyncIterator[House]:
    async with a_house(home) as made:
        yield made
