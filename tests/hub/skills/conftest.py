"""A hub with skills whose clock the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from annabelle.core.home import Home
from hub.skills.house import BEGIN, House, open_house
from support.virtual_clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(BEGIN)


@pytest.fixture
async def house(home: Home, clock: VirtualClock) -> AsyncIterator[House]:
    async with open_house(home, clock) as made:
        yield made
