"""A hub with goals whose clock the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from annabelle.core.home import Home
from hub.goals.house import GoalHouse, open_goal_house
from hub.skills.house import BEGIN
from support.virtual_clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(BEGIN)


@pytest.fixture
async def house(home: Home, clock: VirtualClock) -> AsyncIterator[GoalHouse]:
    async with open_goal_house(home, clock) as made:
        yield made
