"""Skills that are due: a thousand reminders at one instant beside the bare durable engine, single ones on time, and
a thousand that wait."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, func, select

from annabelle.core.clock import SystemClock
from annabelle.core.home import Home
from annabelle.core.messages import OWNER, now
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult
from annabelle.durable.engine import Durable
from annabelle.hub.base_setup import HubStart
from annabelle.hub.boot import RunningHub, assemble
from annabelle.hub.instance import bind_port
from annabelle.hub.skills.skill_service import SkillOwner
from annabelle.skills.schedule import OneMoment
from annabelle.skills.skill_input import SAY
from annabelle.store import skills, threads
from annabelle.store.database import Database, sqlite_url
from annabelle.store.skills import NewSkill
from annabelle.store.tables import fires, messages
from annabelle.toolbox.catalogue import NativeTool
from measure import Report, median, percentile

WAIT_SECONDS = 300
AHEAD = timedelta(seconds=0.4)
READS = ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False)
SETTINGS = {"annabelle_port": 0, "nursery_enabled": False, "thinker_warm_spare": False, "guardian_enabled": False}


@asynccontextmanager
async def skill_hub(folder: Path) -> AsyncGenerator[RunningHub]:
    """A hub in this process with the real clock, without servers and HTTP."""
    home = Home(folder)
    home.prepare()
    with bind_port(0) as sock:
        async with AsyncExitStack() as stack:
            start = HubStart(home, Settings.model_validate(SETTINGS), Redactor(), sock, None, SystemClock())
            machine = await assemble(start, stack)
            await machine.hub.agents.start()
            await machine.hub.storage.durable.launch()
            machine.hub.base.lifecycle.mark_ready()
            fire_runner = machine.components[-1]
            await fire_runner.resume()
            yield machine
            await fire_runner.stop()


async def make_owner(machine: RunningHub) -> SkillOwner:
    def find(conn: Connection) -> str:
        return threads.find_or_create_thread(
            conn, channel="api", chat_id="bench", user_id=OWNER, agent_id="annabelle"
        ).id

    return SkillOwner(OWNER, "annabelle", await machine.hub.storage.database.write(find))


async def add_reminders(machine: RunningHub, count: int, due: datetime) -> None:
    """Stored in one transaction, because a thousand calls would take longer than the wait until they are due."""
    owner = await make_owner(machine)

    def write(conn: Connection) -> None:
        for number in range(count):
            new = NewSkill(
                user_id=owner.user_id, agent_id=owner.agent_id, thread_id=owner.thread_id, name=f"reminder {number}",
                description="", instructions="", trigger_type="cron", trigger=OneMoment(due).trigger,
                plan={"tool": SAY, "arguments": {"message": f"⏰ {number}"}}, required_tools=[], max_steps=1,
                notify=True, notify_interval_minutes=0, missed="run", enabled=True, next_due=due,
                confirmed_at=now(),
            )  # fmt: skip
            skills.add_skill(conn, new)

    await machine.hub.storage.database.write(write)
    await machine.hub.services.skills.update("reminder 0", {"enabled": True}, OWNER)  # wakes the timer


async def warm_up(machine: RunningHub) -> None:
    """The first call of a process reads the words of all languages."""
    made = await machine.hub.services.skills.add(
        {"name": "first", "message": "first", "when": "tomorrow at 9:00"}, await make_owner(machine)
    )
    await machine.hub.services.skills.run_now("first", OWNER)
    await wait_for_ended(machine.hub.storage.database, 1)
    await machine.hub.services.skills.delete(made.id, OWNER)


async def wait_for_ended(database: Database, count: int) -> None:
    async with asyncio.timeout(WAIT_SECONDS):
        while await database.read(count_ended) < count:  # noqa: ASYNC110  rows end, and nothing tells
            await asyncio.sleep(0.05)


def count_ended(conn: Connection) -> int:
    return conn.execute(select(func.count()).where(fires.c.finished_at.is_not(None))).scalar() or 0


def check_burst(conn: Connection, count: int) -> None:
    """One finished fire and one message for each reminder."""
    ended = [tuple(row) for row in conn.execute(select(fires.c.name, fires.c.state))]
    if sorted(ended) != sorted((name, "finished") for name in ("first", *(f"reminder {n}" for n in range(count)))):
        raise SystemExit(f"{count} reminders were due, and these fires came of them: {ended[:20]} …")
    said = conn.execute(select(messages.c.content).where(messages.c.kind == "said")).scalars()
    if sorted(said) != sorted(["⏰ first", *(f"⏰ {number}" for number in range(count))]):
        raise SystemExit("A reminder was told twice or not at all.")


async def burst_of_skills(folder: Path, count: int) -> tuple[float, float]:
    """Seconds and CPU seconds from the instant at which all reminders are due until each has ended."""
    async with skill_hub(folder) as machine:
        database = machine.hub.storage.database
        await warm_up(machine)
        due = now() + timedelta(seconds=1 + count / 200)
        await add_reminders(machine, count, due)
        left = (due - now()).total_seconds()
        if left < 0:
            raise SystemExit("Storing the reminders took longer than until they were due.")
        await asyncio.sleep(left)
        began, cpu = time.perf_counter(), time.process_time()
        await wait_for_ended(database, count + 1)
        taken = time.perf_counter() - began, time.process_time() - cpu
        await database.read(lambda conn: check_burst(conn, count))
        return taken


async def burst_of_workflows(folder: Path, count: int) -> tuple[float, float]:
    """The same for workflows of one step that does nothing, in the same engine."""
    folder.mkdir(parents=True)  # noqa: ASYNC240  nothing else runs yet
    durable = Durable(name="bench", executor_id="bench", database_url=sqlite_url(folder / "flows.db"), schema="flows")
    ended, all_ended = 0, asyncio.Event()

    async def run(argument: JsonObject) -> JsonObject:
        nonlocal ended

        async def work() -> JsonObject:
            return argument

        await durable.step("work", work)
        ended += 1
        if ended == count:
            all_ended.set()
        return argument

    durable.workflow("bench")(run)
    await durable.launch()
    try:
        began, cpu = time.perf_counter(), time.process_time()
        for number in range(count):
            await durable.start("bench", f"bench_{number}", {"number": number})
        await asyncio.wait_for(all_ended.wait(), WAIT_SECONDS)
        while await durable.pending():  # noqa: ASYNC110  the last ones are still being written
            await asyncio.sleep(0.01)
        return time.perf_counter() - began, time.process_time() - cpu
    finally:
        await durable.close()


async def single_fires(folder: Path, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds from due until a fire has begun, and until its tool is called, one after the other."""
    called: list[datetime] = []

    async def note(_arguments: JsonObject, _context: CallContext) -> ToolResult:
        called.append(now())
        return ToolResult(text="noted", trust="trusted")

    async with skill_hub(folder) as machine:
        machine.hub.toolbox.add_native(
            [NativeTool("note_time", "x", {"type": "object", "properties": {}}, note, READS)]
        )
        owner, service = await make_owner(machine), machine.hub.services.skills
        await warm_up(machine)
        dues: list[datetime] = []
        for number in range(count):
            dues.append(now() + AHEAD)
            plan = [{"toolName": "note_time"}]
            await service.add({"name": f"note {number}", "execution_plan": plan, "at": dues[-1].isoformat()}, owner)
            await wait_for_ended(machine.hub.storage.database, number + 2)
        ran = sorted(await service.history(OWNER, None, count), key=lambda fire: fire.due_at)
        begun = [(fire.started_at - fire.due_at) / timedelta(milliseconds=1) for fire in ran if fire.started_at]
        if not len(called) == len(begun) == count:
            raise SystemExit(
                f"{count} skills were due one by one; {len(begun)} began, {len(called)} called their tool."
            )
        return begun, [(at - due) / timedelta(milliseconds=1) for at, due in zip(called, dues, strict=True)]


async def idle_share(folder: Path, count: int, seconds: float) -> float:
    """CPU of a hub whose skills are all due in a year, in percent of a core."""
    async with skill_hub(folder) as machine:
        await add_reminders(machine, count, now() + timedelta(days=365))
        await asyncio.sleep(2)
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.sleep(seconds)
        return (time.process_time() - cpu) / (time.perf_counter() - began) * 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skills", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a small run that shows that everything still works")
    arguments = parser.parse_args()
    count, rounds, singles, seconds = arguments.skills, arguments.rounds, 40, 12.0
    if arguments.quick:
        count, rounds, singles, seconds = 100, 1, 5, 2.0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        bare, hub = list[tuple[float, float]](), list[tuple[float, float]]()
        for number in range(rounds):
            bare.append(asyncio.run(burst_of_workflows(folder / f"bare{number}", count)))
            hub.append(asyncio.run(burst_of_skills(folder / f"hub{number}", count)))
        report = Report("schedule")
        judge_bursts(report, count, bare, hub)
        begun, called = asyncio.run(single_fires(folder / "single", singles))
        report.figures |= {"late_p50_ms": median(begun), "late_p95_ms": percentile(begun, 0.95)}
        report.within("a single skill begins so late, p95, ms", percentile(begun, 0.95), 300)
        report.within_time("due to the tool call, p50", median(called), 15)
        idle = asyncio.run(idle_share(folder / "idle", count, seconds))
        report.figures["idle_percent"] = idle
        report.within("CPU while all skills wait, percent of a core", idle, 1)
    report.print()


def judge_bursts(report: Report, count: int, bare: list[tuple[float, float]], hub: list[tuple[float, float]]) -> None:
    """The best of the rounds, because others use the machine, too."""
    (bare_seconds, bare_cpu), (hub_seconds, hub_cpu) = (
        (min(taken for taken, _ in runs), min(cpu for _, cpu in runs)) for runs in (bare, hub)
    )
    report.figures |= {
        "fired_per_second": count / hub_seconds,
        "bare_per_second": count / bare_seconds,
        "cpu_ms_a_fire": hub_cpu / count * 1000,
        "bare_cpu_ms": bare_cpu / count * 1000,
    }
    report.ratios |= {"cpu_to_bare": hub_cpu / bare_cpu, "rate_to_bare": bare_seconds / hub_seconds}
    report.within_time("a reminder among a thousand of one instant", hub_seconds / count * 1000, 1000 / 150)
    report.within("CPU of one of them, ratio to a workflow of one step", hub_cpu / bare_cpu, 2)


if __name__ == "__main__":
    main()
