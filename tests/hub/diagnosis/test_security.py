"""What the guardian found, read from the audit."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.audit.writer import AuditWriter
from hub.diagnosis.conftest import Examined
from hub.skills.house import House
from support.virtual_clock import VirtualClock

HIGH: JsonObject = {"server": "filer", "verdict": "high", "score": 0.99}
CLEAN: JsonObject = {"server": "filer", "verdict": "none", "score": 0.01}


async def note(house: House, *scans: JsonObject) -> None:
    audit = house.machine.hub.security.audit
    assert isinstance(audit, AuditWriter)
    for facts in scans:
        audit.note("scan", facts)
    await asyncio.to_thread(audit.flush)


@pytest.mark.req("DIA-01")
async def test_three_threats_within_an_hour_are_a_warning(house: House, clock: VirtualClock, examine: Examined) -> None:
    await note(house, HIGH, HIGH, CLEAN)
    clock.moment = now()
    assert await examine("threat-rate") == []
    await note(house, HIGH)
    clock.moment = now()
    (found,) = await examine("threat-rate")
    assert (found.severity, found.text) == ("warning", "The guardian blocked 3 things in the last hour.")
    clock.moment += timedelta(hours=1)
    assert await examine("threat-rate") == []


async def test_only_the_last_two_hundred_scans_count(house: House, clock: VirtualClock, examine: Examined) -> None:
    await note(house, HIGH, HIGH, HIGH, *[CLEAN] * 197)
    clock.moment = now()
    assert await examine.severities("threat-rate") == ["warning"]
    await note(house, CLEAN)
    assert await examine("threat-rate") == []


@pytest.mark.req("DIA-01")
@pytest.mark.parametrize(
    "doubtful", [{"verdict": "medium", "score": 0.74}, {"verdict": "low", "score": 0.26}, {"verdict": "unscanned"}]
)
async def test_five_doubtful_scans_of_fifty_are_worth_a_note(
    house: House, examine: Examined, doubtful: JsonObject
) -> None:
    sure: JsonObject = {"verdict": "medium", "score": 0.75}
    await note(house, *[doubtful] * 4, sure)
    assert await examine("guardian-scan-quality") == []
    await note(house, doubtful)
    assert await examine.severities("guardian-scan-quality") == ["info"]
    await note(house, *[CLEAN] * 45)
    assert await examine("guardian-scan-quality") == [], "of the last fifty only four are left"
