"""/kill and /resume: parts stay stopped across restarts, and only what was named stops."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from annabelle.core.contract import TurnBrief, TurnResult
from annabelle.core.errors import TurnCancelled
from annabelle.core.home import Home
from annabelle.hub.agents.halts import ALL, CHANNELS, SCHEDULER, THINKER, Halts
from hub.approvals.house import House, PlayedThinker, a_house
from hub.commands.conftest import Speaker
from hub.skills.house import BEGIN, open_house
from support.timing import seconds
from support.virtual_clock import VirtualClock


@pytest.mark.req("CMD-02")
@pytest.mark.parametrize("target", [ALL, THINKER, SCHEDULER, *CHANNELS])
async def test_what_is_stopped_stays_so_over_a_restart_until_it_is_resumed(home: Home, target: str) -> None:
    async with a_house(home) as house:
        assert f"/resume {target}" in await Speaker(house, house.owner).say(f"/kill {target}")
    async with a_house(home) as house:
        owner, halts = Speaker(house, house.owner), house.hub.agents.halts
        parts = (THINKER, SCHEDULER, *CHANNELS)
        assert [part for part in parts if halts.is_halted(part)] == ([*parts] if target == ALL else [target])
        answered = await owner.post("hello")
        assert answered["state"] == ("failed" if target in (ALL, THINKER) else "done")
        if target == ALL:
            assert await owner.say("/resume scheduler") == "Everything is stopped, not just scheduler."
        assert "on" in await owner.say(f"/resume {target}")
        assert await owner.say("hello again") == "You said: hello again"
    assert Halts(home.halts_file).stopped == ()
    assert Halts(home.halts_file).everything is None


@pytest.mark.req("CMD-02")
async def test_the_terminal_and_the_api_stop_and_resume_the_same_parts(house: House) -> None:
    stopped = (await house.owner.post("/kill", json={"target": "telegram"})).json()
    assert stopped["halted"] == {"all": False, "agents": [], "parts": ["telegram"]}
    assert "Stopped: telegram." in await Speaker(house, house.owner).say("/status")
    unknown = await house.owner.post("/kill", json={"target": "telegramm"})
    assert unknown.status_code == 404
    await house.owner.post("/stop", json={"target": "thinker"})
    conflict = await house.owner.post("/resume", json={"target": "annabelle"})
    assert (conflict.status_code, conflict.json()["error"]["message"]) == (409, "All agents are stopped, not just one.")
    resumed = (await house.owner.post("/resume", json={"target": "all"})).json()
    assert resumed["halted"] == {"all": False, "agents": [], "parts": []}


@pytest.mark.req("CMD-01", "TRU-06")
async def test_kill_in_the_middle_of_a_turn_ends_it_and_is_answered(house: House, owner: Speaker) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def hang(_self: PlayedThinker, brief: TurnBrief) -> TurnResult:
        begun.set()
        async with asyncio.timeout(seconds(30)):
            await cancelled.wait()
        error = TurnCancelled("The turn was stopped.").body()
        return TurnResult(message_id=brief.message_id, success=False, error=error)

    house.thinker._turn = hang.__get__(house.thinker)  # type: ignore[method-assign]
    running = asyncio.create_task(owner.post("work for long"))
    async with asyncio.timeout(seconds(30)):
        await begun.wait()
    answer = await owner.say("/kill thinker")
    assert answer.startswith("thinker is stopped; 1 turn was ended.")
    ended = await running
    assert (ended["state"], ended["reply"]["metadata"]["error"]["code"]) == ("failed", "cancelled")  # type: ignore[index]
    assert "All agents were stopped" in await owner.say("and now?")
    cancelled.set()


@pytest.mark.req("CMD-02", "SKL-08")
@pytest.mark.parametrize(("missed", "states"), [("run", ["missed", "missed", "finished"]), ("skip", ["missed"] * 3)])
async def test_a_stopped_scheduler_starts_nothing_and_the_missed_policy_decides_afterwards(
    home: Home, missed: str, states: list[str]
) -> None:
    clock = VirtualClock(BEGIN)
    async with open_house(home, clock) as house:
        owner = Speaker(house, house.owner)  # type: ignore[arg-type]
        await house.add_looking(trigger_config={"interval_minutes": 60}, if_missed=missed)
        await owner.say("/kill scheduler")
        await house.clock.settle()
        await house.clock.jump(BEGIN + timedelta(minutes=200))
        await house.clock.settle()
        assert await house.fires() == []
        assert (await owner.say("/cron")).startswith("The scheduler is stopped")
        await owner.say("/resume scheduler")
        await house.clock.settle()
        assert [fire.state for fire in await house.fires()] == states
        assert house.calls == states.count("finished")
