"""What skills do when the person's time zone is changed."""

from __future__ import annotations

import pytest

from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from hub.goals.house import GoalHouse, open_goal_house
from hub.skills.house import BEGIN
from support.virtual_clock import VirtualClock


async def describe(house: GoalHouse) -> dict[str, tuple[str, str]]:
    """Of each skill when it runs, in words and next."""
    service = house.house.service
    known = [one for one in await service.list(OWNER) if one.next_due is not None]
    return {one.name: (service.describe(one), f"{one.next_due:%H:%M}") for one in known}


@pytest.mark.req("SKL-01", "AGE-09")
async def test_times_of_day_stay_what_they_are_when_the_time_zone_is_changed(home: Home) -> None:
    async with open_goal_house(home, VirtualClock(BEGIN), user_timezone="UTC") as house:
        await house.add("Piano", check_in={"frequency": "weekdays", "time": "08:30"})
        await house.house.add_looking(when="every day at 7")
        await house.house.add(name="call", message="call", schedule="0 9 * * *", timezone="America/New_York")
        before = await describe(house)
    assert before["look"] == ("every day at 07:00", "07:00")
    async with open_goal_house(home, VirtualClock(BEGIN), user_timezone="Nowhere/Land") as house:
        assert await describe(house) == before
    async with open_goal_house(home, VirtualClock(BEGIN), user_timezone="Europe/Helsinki") as house:
        after = await describe(house)
        assert (await house.read(lambda conn: house.service.load_feed_times(conn, OWNER)))["Morning"] == "08:00"
    # Monday, the clocks are put forward on Sunday.
    hours = {"look": "05:00", "Morning feed": "06:00", "Check-in: Piano": "05:30", "call": before["call"][1]}
    assert {name: after[name][1] for name in hours} == hours
    assert after["look"][0] == "every day at 07:00"
    assert after["call"][0] == "every day at 09:00 (America/New_York)"
    assert after["Heartbeat: Piano"][1] == before["Heartbeat: Piano"][1]
