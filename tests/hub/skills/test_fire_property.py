"""Whatever the schedule, whenever the hub dies and however the clock moves: each due instant ends once (SKL-08).

The crashes are simulated: at a named point everything of one hub stops, and another goes on with the same database.
`test_fire_crash.py` really kills a process at these points.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar
from unittest import mock
from zoneinfo import ZoneInfo

import pytest
from hypothesis import event, given, settings, strategies as st
from sqlalchemy import Connection

from annabelle.core.home import Home
from annabelle.core.messages import OWNER
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.hub.base import HubLifecycle
from annabelle.hub.conversations.event_log import EventFanout, EventLog
from annabelle.hub.conversations.turns import MaintenanceGate
from annabelle.hub.failpoints import SKILL_FAILPOINTS
from annabelle.hub.security.request_guard import RateLimit
from annabelle.hub.skills import fire_runner
from annabelle.hub.skills.fire_runner import FireRunner, FireTaskDeps
from annabelle.hub.skills.skill_service import SkillOwner, SkillService
from annabelle.hub.trust.call_records import StoredCallJournal
from annabelle.skills.schedule import CronSchedule, IntervalSchedule, OneMoment, Schedule
from annabelle.store import skills, threads
from annabelle.store.database import Database, sqlite_url
from annabelle.store.skills import NewSkill, StoredFire
from annabelle.toolbox.middleware import record
from annabelle.toolbox.middleware.record import CallRecorder, RecordCall
from support.timing import seconds
from support.virtual_clock import VirtualClock

T = TypeVar("T")
BERLIN = ZoneInfo("Europe/Berlin")
BEGIN = datetime(2027, 3, 26, 11, tzinfo=UTC)
"""Two days before the clocks change in Berlin."""
RING = ToolSpec(
    name="ring",
    server="test",
    original_name="ring",
    description="",
    input_schema={"type": "object"},
    annotations=ToolAnnotations(read_only=False, destructive=False, idempotent=False, open_world=True),
)
"""A call that must not be repeated."""
CALL_FAILPOINTS = ("toolbox.before_begin", "toolbox.before_dispatch", "toolbox.before_result_recorded")
WEEK = 7 * 24 * 60


class Died(BaseException):
    """Raised by all that is left of a hub that was killed."""


class Hub:
    """One life of a hub: it ends for good at the armed point."""

    def __init__(self, database: Database, clock: VirtualClock, world: World) -> None:
        self.armed: str | None = None
        self.dead = asyncio.Event()
        self.clock, self._database, self._world = clock, database, world
        journal = StoredCallJournal(self)  # type: ignore[arg-type]
        self._call = RecordCall(self, CallRecorder(journal))  # type: ignore[arg-type]
        storage = SimpleNamespace(
            database=self,
            events=EventLog(self, EventFanout()),
            durable=mock.MagicMock(),  # type: ignore[arg-type]
        )
        self.service = SkillService(
            database=self,  # type: ignore[arg-type]
            clock=clock,
            time_zone=BERLIN,
            toolbox=mock.MagicMock(),
            playbooks=Path(),
            webhook_rate=RateLimit(10),
            token_budget=1_000,
        )
        access = SimpleNamespace(
            check_user=lambda *_: None,
            toolbox=SimpleNamespace(call=self._call_tool),
            users=SimpleNamespace(is_known=lambda _user_id: True),
        )
        lifecycle = HubLifecycle(clock)
        lifecycle.mark_ready()
        self.runner = FireRunner(
            base=SimpleNamespace(lifecycle=lifecycle, home=Home(Path()), settings=Settings()),  # type: ignore[arg-type]
            storage=storage,  # type: ignore[arg-type]
            service=self.service,
            deps=FireTaskDeps(
                database=self,  # type: ignore[arg-type]
                access=access,  # type: ignore[arg-type]
                agents=mock.MagicMock(**{"halts.is_halted.return_value": False, "is_held.return_value": False}),
                maintenance=MaintenanceGate(),
                thread_queue=mock.AsyncMock(),
                system_work={},
            ),
        )

    async def read(self, query: Callable[[Connection], T]) -> T:
        self._check_alive()
        return await self._database.read(query)

    async def write(self, change: Callable[[Connection], T]) -> T:
        self._check_alive()
        return await self._database.write(change)

    async def _call_tool(self, _name: str, arguments: JsonObject, context: CallContext, _policy: object) -> ToolResult:
        return await self._call.call(RING, arguments, context)

    async def call(self, _tool: ToolSpec, _arguments: JsonObject, context: CallContext) -> ToolResult:
        self._check_alive()
        self._world.rang[str(context.call_id).rpartition(":")[0]] += 1
        return ToolResult(text="It rang.", trust="trusted")

    def failpoint(self, name: str) -> None:
        self._check_alive()
        if name == self.armed:
            self.dead.set()
            raise Died

    def _check_alive(self) -> None:
        if self.dead.is_set():
            raise Died


class World:
    """A machine with a database, a clock, and one hub after the other."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.rang: Counter[str] = Counter()
        self.latest = BEGIN
        self.hub = Hub(database, VirtualClock(BEGIN), self)

    async def boot(self) -> None:
        """Another hub on the same database, at the same time of the clock."""
        await self.hub.runner.stop()
        self.hub = Hub(self.database, VirtualClock(self.hub.clock.moment), self)
        await self.hub.runner.start()

    async def jump(self, moment: datetime) -> None:
        """The clock shows another time; when the hub dies of what is due then, another one goes on."""
        self.latest = max(self.latest, moment)
        moving = asyncio.create_task(self.hub.clock.jump(moment))
        dying = asyncio.create_task(self.hub.dead.wait())
        await asyncio.wait((moving, dying), return_when=asyncio.FIRST_COMPLETED)
        await self._all_ended()
        for task in (moving, dying):
            task.cancel()
        self.hub.clock.moment = moment

    async def _all_ended(self) -> None:
        async with asyncio.timeout(seconds(30)):
            while self.hub.dead.is_set() or await self.database.read(skills.list_open_fires):
                if self.hub.dead.is_set():
                    event("a hub died")
                    await self.boot()
                    await self.hub.clock.settle()
                await asyncio.sleep(0.001)


async def add_skill(world: World, schedule: Schedule, missed: str) -> None:
    def write(conn: Connection) -> None:
        thread = threads.find_or_create_thread(conn, channel="api", chat_id="c", user_id=OWNER, agent_id="annabelle")
        owner = SkillOwner(OWNER, "annabelle", thread.id)
        new = NewSkill(
            user_id=owner.user_id, agent_id=owner.agent_id, thread_id=owner.thread_id, name="ring", description="",
            instructions="", trigger_type="cron", trigger=schedule.trigger, plan={"tool": "ring", "arguments": {}},
            required_tools=[], max_steps=1, notify=True, notify_interval_minutes=0, missed=missed, enabled=True,
            next_due=schedule.next_after(BEGIN),
        )  # fmt: skip
        skills.add_skill(conn, new)

    await world.database.write(write)


def instants(schedule: Schedule, until: datetime) -> list[datetime]:
    found, due = list[datetime](), schedule.next_after(BEGIN)
    while due is not None and due <= until:
        found.append(due)
        due = schedule.next_after(due)
    return found


schedules = st.one_of(
    st.sampled_from(["0 6 * * *", "30 2 * * *", "0 * * * *", "15 */7 * * 1-5", "0 0 1 * *", "*/50 3 * * 0"]).map(
        lambda expression: CronSchedule(expression, BERLIN)
    ),
    st.integers(60, 5 * 24 * 60).map(lambda minutes: IntervalSchedule(minutes, BEGIN)),
    st.integers(1, 2 * WEEK).map(lambda minutes: OneMoment(BEGIN + timedelta(minutes=minutes))),
)
jumps = st.one_of(st.integers(-WEEK, -1), st.integers(0, 90), st.integers(0, WEEK), st.just(WEEK))
deaths = st.sampled_from([None, *SKILL_FAILPOINTS, *CALL_FAILPOINTS])
Story = list[tuple[int, str | None]]


async def live(folder: Path, schedule: Schedule, missed: str, story: Story) -> None:
    database = await Database.open(sqlite_url(folder / "annabelle.db"))
    world = World(database)
    try:
        with pytest.MonkeyPatch.context() as patched:
            for module in (fire_runner, record):
                patched.setattr(module, "failpoint", lambda name: world.hub.failpoint(name))
            await add_skill(world, schedule, missed)
            await world.hub.runner.start()
            for minutes, death in story:
                world.hub.armed = death
                await world.jump(world.hub.clock.moment + timedelta(minutes=minutes))
            await world.boot()
            await world.jump(world.hub.clock.moment)
            await world.hub.runner.stop()
        fires = await database.read(lambda conn: skills.list_fires(conn, OWNER, limit=10_000))
        # Those before it was made are due where the clock was set back so far.
        earlier = [fire.due_at for fire in fires if fire.due_at <= BEGIN]
        assert all(schedule.next_after(due - timedelta(microseconds=1)) == due for due in earlier)
        check(fires, sorted(earlier) + instants(schedule, world.latest), world.rang)
    finally:
        await database.close()


def check(fires: list[StoredFire], expected: list[datetime], rang: Counter[str]) -> None:
    assert sorted(fire.due_at for fire in fires) == expected, "no instant is lost, none comes twice"
    for fire in fires:
        assert fire.state in ("finished", "missed", "unknown"), fire
        assert fire.finished_at is not None
        if fire.state != "unknown":
            assert rang[fire.id] == (fire.state == "finished"), fire
    assert set(rang.values()) <= {1}, "nothing runs twice"
    assert set(rang) <= {fire.id for fire in fires}


@pytest.mark.req("SKL-08", "DUR-01")
@pytest.mark.incident("I-23")
@settings(deadline=None, max_examples=60)
@given(
    schedule=schedules,
    missed=st.sampled_from(["run", "skip", "list"]),
    story=st.lists(st.tuples(jumps, deaths), min_size=1, max_size=7),
)
def test_each_due_instant_ends_once_whatever_dies_and_however_the_clock_moves(
    empty_database: Path, schedule: Schedule, missed: str, story: Story
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(empty_database, Path(folder) / "annabelle.db")
        asyncio.run(live(Path(folder), schedule, missed, story))
