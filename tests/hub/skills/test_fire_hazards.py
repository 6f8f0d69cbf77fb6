"""What goes wrong around a skill: it is deleted while it runs, the clock is set back, it makes skills (SKL-08)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from annabelle.core.errors import InvalidArguments, NotFound
from annabelle.core.messages import OWNER
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.toolbox.catalogue import NativeTool
from hub.skills.house import ANY, BEGIN, READS, House
from support.timing import seconds

pytestmark = pytest.mark.req("SKL-08")


class Bell:
    """A tool that rings until it is let go."""

    def __init__(self, house: House) -> None:
        self.begun, self.let_go, self.result = asyncio.Event(), asyncio.Event(), ToolResult(text="It rang.")
        house.machine.hub.toolbox.add_native([NativeTool("ring", "x", ANY, self._ring, READS)])

    async def _ring(self, _arguments: JsonObject, _context: CallContext) -> ToolResult:
        self.begun.set()
        await asyncio.wait_for(self.let_go.wait(), seconds(30))
        return self.result


async def delete_while_it_rings(house: House, bell: Bell) -> None:
    await house.add(name="ring", execution_plan=[{"toolName": "ring"}], interval_minutes=10)
    await house.clock.jump(BEGIN + timedelta(minutes=10))
    await asyncio.wait_for(bell.begun.wait(), seconds(30))
    await house.service.delete("ring", OWNER)
    bell.let_go.set()
    await house.run(timedelta(hours=1))


async def test_a_skill_that_is_deleted_while_it_runs_ends_with_what_came_of_it_and_says_nothing(house: House) -> None:
    await delete_while_it_rings(house, Bell(house))
    assert [(fire.state, fire.result) for fire in await house.fires()] == [
        ("finished", {"text": "It rang.", "trust": "trusted"})
    ]
    assert await house.said() == []
    assert await house.service.list(OWNER) == []


async def test_a_skill_that_is_deleted_while_it_fails_is_skipped_and_not_tried_again(house: House) -> None:
    bell = Bell(house)
    bell.result = ToolResult.failure(NotFound("There is no bell.").body())
    await delete_while_it_rings(house, bell)
    assert [fire.state for fire in await house.fires()] == ["skipped"]
    assert await house.said() == []


async def test_what_was_done_is_not_done_again_when_the_clock_is_set_back(house: House) -> None:
    await house.add_looking(interval_minutes=60)
    await house.run(timedelta(hours=3))
    await house.clock.jump(BEGIN + timedelta(hours=1, minutes=30))
    await house.service.update("look", {"enabled": False}, OWNER)
    await house.service.update("look", {"enabled": True}, OWNER)  # reckoned by the clock as it is now
    await house.run(timedelta(hours=3))
    assert [(fire.due_at - BEGIN, fire.state) for fire in await house.fires()] == [
        (timedelta(hours=hour), "finished") for hour in (1, 2, 3, 4)
    ]
    assert house.calls == 4


@pytest.mark.parametrize(("policy", "ran", "said"), [("run", 1, 1), ("skip", 0, 0), ("list", 0, 1)])
async def test_a_machine_that_was_asleep_for_a_week_makes_up_for_one_or_none(
    house: House, policy: str, ran: int, said: int
) -> None:
    await house.add_looking(interval_minutes=60, if_missed=policy)
    await house.clock.jump(BEGIN + timedelta(days=7, minutes=30))
    states = [fire.state for fire in await house.fires()]
    assert states == ["missed"] * (7 * 24 - ran) + ["finished"] * ran
    assert (house.calls, len(await house.said())) == (ran, said)


async def test_run_by_hand_twice_at_one_instant_is_done_twice(house: House) -> None:
    await house.add_looking()
    first, again = await house.service.run_now("look", OWNER), await house.service.run_now("look", OWNER)
    assert first.id != again.id
    assert len(await house.fires()) == house.calls == 2


@pytest.mark.parametrize("tool", ["memory_store_skill", "memory_update_skill", "memory_delete_skill"])
async def test_a_skill_that_would_make_or_change_skills_is_refused(house: House, tool: str) -> None:
    """It would multiply without end: nobody is there to be asked about each."""
    with pytest.raises(InvalidArguments, match="no skills"):
        await house.add(name="maker", execution_plan=[{"toolName": tool}], interval_minutes=1)
    with pytest.raises(InvalidArguments, match="no skills"):
        await house.add(name="maker", instructions="Do it.", required_tools=[tool], interval_minutes=1)
