"""A hub in this process whose clock the test moves, and what its checks say."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.hub.diagnosis.check import CheckFinding
from hub.skills.house import House, open_house
from support.virtual_clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(now())


@pytest.fixture
async def house(home: Home, clock: VirtualClock) -> AsyncIterator[House]:
    async with open_house(home, clock) as made:
        yield made


class Examined:
    """What the checks of a hub find."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def __call__(self, check: str) -> list[CheckFinding]:
        report = await self._house.machine.hub.services.upkeep.diagnosis.run()
        mine = [finding for finding in report.findings if finding.check == check]
        assert mine, f"{check} said nothing"
        return [finding for finding in mine if finding.severity != "ok"]

    async def severities(self, check: str) -> list[str]:
        return [finding.severity for finding in await self(check)]


@pytest.fixture
def examine(house: House) -> Examined:
    return Examined(house)
