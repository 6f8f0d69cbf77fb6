"""A home with goals is restored: everything is there, and what was done is not done again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from annabelle.core.contract import TurnBrief
from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.store import feed
from annabelle.store.home_backup import back_up_home
from annabelle.store.home_restore import restore_home
from hub.goals.house import call, open_goal_house
from hub.goals.test_check_ins import add_note, check_ins
from hub.goals.test_feed import item
from hub.goals.test_mishaps import fail_tasks
from hub.goals.test_tasks import RESEARCH
from support.virtual_clock import VirtualClock


@pytest.mark.req("BEY-06", "AGE-08", "AGE-13")
async def test_a_restored_home_goes_on_with_its_goals_and_does_nothing_twice(
    home: Home, clock: VirtualClock, tmp_path: Path
) -> None:
    archive, restored = tmp_path / "home.backup", Home(tmp_path / "restored")
    async with open_goal_house(home, clock) as house:
        goal = await house.add(check_in={"frequency": "daily", "time": "12:45"})
        await house.service.set_check_in(goal.id, OWNER, {"action": "follow_up", "delay_hours": 3, "intent": "teacher"})
        fail_tasks(house)

        def plan(brief: TurnBrief) -> JsonObject:
            if brief.channel == "user_agent":
                return {"calls": [call("generate_feed", items=[item("Chords")])], "say": ""}
            return {"calls": [] if "check-in" in brief.text else [RESEARCH], "say": "Yes."}

        house.play(plan)
        await house.house.run(timedelta(hours=2, minutes=30))
        await house.say(goal)
        await add_note(house, goal)
        assert len(check_ins(house)) == 1
        back_up_home(home, archive, Settings(), passphrase=None, force=False, progress=lambda _done, _all: None)
    restore_home(restored, archive, passphrase=None, secrets=False, force=False, progress=lambda _done, _all: None)
    later = VirtualClock(clock.now() + timedelta(hours=20))
    async with open_goal_house(restored, later) as again:
        again.play(lambda _brief: {"calls": []})
        await again.house.run(timedelta(minutes=10))
        await again.rest()
        assert len(again.thinker.briefs) == 2
        for due in ("wrote notes", "teacher"):
            assert len([one for one in check_ins(again) if due in one.text]) == 1
        assert [one.title for one in await again.read(lambda conn: feed.list_feed(conn, OWNER))] == ["Chords"]
        assert (await again.hub.services.upkeep.health.run()).retried == 1
        await again.rest()
        assert [one.state for one in await again.tasks(goal)] == ["completed"]
        assert {one.title for one in await again.notes(goal)} == {"Find teachers", "x"}
