"""The report as a whole: checks that fail or hang, what changed since the last one, and the skill that tells it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from itertools import pairwise

import pytest

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.hub.diagnosis.check import Check, CheckFinding, DiagnosisContext, Problem, for_terminal
from annabelle.hub.diagnosis.offline import offline_context
from annabelle.hub.diagnosis.report import CHECKS, render_changes, render_report, run_checks
from annabelle.hub.skills.skill_seeder import SkillSeeder
from annabelle.store import cost_control
from hub.skills.house import House
from support.virtual_clock import VirtualClock

SIX_HOURS = timedelta(hours=6)


@pytest.mark.req("DIA-01")
def test_there_are_twenty_two_checks_in_seven_categories() -> None:
    assert Counter(check.category for check in CHECKS) == {
        "services": 5,
        "embedding": 3,
        "logs": 3,
        "schedule": 4,
        "tools": 2,
        "data": 3,
        "security": 2,
    }
    assert len({check.id for check in CHECKS}) == 22


def make_check(name: str, run: Callable[[DiagnosisContext], Awaitable[Sequence[Problem]]]) -> Check:
    return Check(name, "services", ("critical",), "x", run)


@pytest.mark.req("DIA-01")
async def test_a_check_that_fails_or_hangs_is_a_finding_and_the_others_are_told(home: Home) -> None:
    async def fail(_context: DiagnosisContext) -> Sequence[Problem]:
        raise KeyError("sk-secret-in-an-error")

    async def explain(_context: DiagnosisContext) -> Sequence[Problem]:
        raise StorageTrouble("The disk is full.")

    async def hang(_context: DiagnosisContext) -> Sequence[Problem]:
        await asyncio.Event().wait()
        return ()

    async def find(_context: DiagnosisContext) -> Sequence[Problem]:
        return [Problem("info", "A note.", "Nothing.", "a"), Problem("critical", "It is gone.", "Act.", "b")]

    async def be_fine(_context: DiagnosisContext) -> Sequence[Problem]:
        return ()

    checks = [make_check(run.__name__, run) for run in (be_fine, fail, explain, hang, find)]
    with offline_context(home) as context:
        report = await run_checks(checks, context, seconds=0.05)
    said = [(one.check, one.severity, one.text) for one in report.findings]
    assert said == [
        ("find", "critical", "It is gone."),
        ("fail", "warning", "This could not be checked: KeyError."),
        ("explain", "warning", "This could not be checked: The disk is full."),
        ("hang", "warning", "This could not be checked: it took longer than 0.05 seconds."),
        ("find", "info", "A note."),
        ("be_fine", "ok", "Nothing was found."),
    ]
    text = render_report(report)
    assert text.splitlines()[:3] == [
        "1 critical thing, 3 warnings, 1 note; 1 checks found nothing.",
        "✗ It is gone. (find)",
        "   Act.",
    ]


async def test_checks_run_side_by_side(home: Home) -> None:
    both = asyncio.Barrier(2)

    async def meet(_context: DiagnosisContext) -> Sequence[Problem]:
        await both.wait()
        return ()

    with offline_context(home) as context:
        report = await run_checks([make_check("a", meet), make_check("b", meet)], context)
    assert report.worst == "ok"
    assert render_report(report) == "All is well: 2 checks found nothing."


def test_an_action_names_the_commands_of_the_terminal_there() -> None:
    assert for_terminal("Let it go on with /resume annabelle") == "Let it go on with annabelle resume annabelle"
    assert for_terminal("/cron shows it.") == "annabelle skills shows it."
    assert for_terminal("Look into path/logs") == "Look into path/logs"


def found(severity: str = "warning", text: str = "It is so.", subject: str = "") -> CheckFinding:
    return CheckFinding("halt-manager", "services", severity, text, "Act.", subject)  # pyright: ignore[reportArgumentType]


@pytest.mark.req("DIA-03")
def test_changes_are_what_is_new_worse_or_gone_and_not_another_number() -> None:
    assert render_changes([found(text="It has 51 MB.")], [found(text="It has 52 MB.")]) == ""
    assert render_changes([], [found()]) == "Something changed:\n! It is so. (halt-manager)\n   Act."
    assert render_changes([found()], []) == "Something changed:\n✓ No longer so: It is so. (halt-manager)"
    worse = render_changes([found()], [found("critical")])
    assert worse == "Something changed:\n✗ It is so. (halt-manager)\n   Act.", "it got worse, it is not gone"
    both = render_changes([found(subject="a")], [found(subject="b", text="That too.")])
    assert "That too." in both
    assert "No longer so: It is so." in both


async def seed(house: House, home: Home) -> None:
    await SkillSeeder(house.service, home.skills, house.machine.hub.base.settings, "annabelle").seed_defaults()


@pytest.mark.req("DIA-03")
async def test_every_six_hours_the_owner_hears_of_changes_and_of_nothing_else(
    house: House, home: Home, clock: VirtualClock
) -> None:
    await seed(house, home)
    await house.service.update("Agent Health", {"enabled": False}, OWNER)  # every five minutes
    await house.run(SIX_HOURS + timedelta(minutes=1))
    assert (await house.machine.hub.services.upkeep.diagnosis.run()).worst == "info"
    assert await house.said() == [], "a note is nothing to be disturbed for"
    await house.machine.hub.agents.pause_account("other:background", "it used 9 tokens")
    await house.run(SIX_HOURS)
    (first,) = await house.said()
    assert first.startswith("Something changed:\n✗ Background work of other is paused for its costs")
    await house.run(SIX_HOURS)
    assert await house.said() == [first], "nothing changed since"
    await house.machine.hub.storage.database.write(
        lambda conn: cost_control.resume_agent(conn, "other:background", reset_window=False)
    )
    await house.run(SIX_HOURS)
    assert (await house.said())[1].startswith("Something changed:\n✓ No longer so: Background work of other")
    fires = [fire for fire in await house.service.history(OWNER, None, 5_000) if fire.name == "Health Report"]
    assert [fire.state for fire in fires] == ["finished"] * 4
    times = sorted(fire.due_at for fire in fires)
    assert {later - earlier for earlier, later in pairwise(times)} == {SIX_HOURS}


@pytest.mark.req("DIA-03")
async def test_a_change_that_only_a_running_hub_can_find_is_told_too(house: House) -> None:
    diagnosis = house.machine.hub.services.upkeep.diagnosis
    await house.add_looking(interval_minutes=15)
    await house.machine.components[-1].stop()  # nothing runs it
    await diagnosis.report_changes("fire_1", house.clock.now())
    house.clock.moment += timedelta(hours=3)
    assert "“look” did not run when it was due. (stale-cron-jobs)" in await diagnosis.report_changes(
        "fire_2", house.clock.now()
    )


@pytest.mark.req("DIA-03", "DUR-03")
async def test_a_report_that_is_made_again_after_a_crash_tells_the_same(house: House, home: Home) -> None:
    diagnosis, halts = house.machine.hub.services.upkeep.diagnosis, house.machine.hub.agents.halts
    at = house.clock.now()
    await diagnosis.report_changes("fire_1", at)
    halts.stop("annabelle", "owner")
    told = await diagnosis.report_changes("fire_2", at)
    assert "annabelle is stopped" in told
    assert await diagnosis.report_changes("fire_2", at) == told, "nobody knows whether it was told"
    assert await diagnosis.report_changes("fire_3", at) == ""


async def test_a_torn_last_report_is_like_none(house: House, home: Home) -> None:
    diagnosis = house.machine.hub.services.upkeep.diagnosis
    house.machine.hub.agents.halts.stop("annabelle", "owner")
    await diagnosis.report_changes("fire_1", house.clock.now())
    home.last_diagnosis_file.write_bytes(home.last_diagnosis_file.read_bytes()[:20])
    assert "annabelle is stopped" in await diagnosis.report_changes("fire_2", house.clock.now())
