"""The one door to the durable engine, in one process, on both databases."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from dbos import DBOS
from sqlalchemy import Engine, text

from annabelle.core.errors import (
    AlreadyRunning,
    AnnabelleError,
    Conflict,
    NotFound,
    ProviderRefused,
    StorageTrouble,
    TurnCancelled,
    Unavailable,
)
from annabelle.core.tools import JsonObject
from annabelle.durable import engine as module
from annabelle.durable import workflow_runs
from annabelle.durable.engine import Durable, PendingWorkflow
from annabelle.durable.steps import FIRST_NUMBER
from annabelle.store.database import sqlite_url
from annabelle.store.engine import make_engine
from support.timing import seconds


class Story:
    """A workflow of two steps that waits in between until it is let go."""

    def __init__(self, durable: Durable) -> None:
        self.done: list[str] = []
        self.waiting = asyncio.Event()
        self.go = asyncio.Event()
        self._durable = durable
        durable.workflow("story")(self.tell)

    async def tell(self, argument: JsonObject) -> JsonObject:
        await self._durable.step("first", lambda: self._do("first"))
        await self._durable.step("second", self._second)
        return {"told": argument["name"]}

    async def _second(self) -> object:
        self.waiting.set()
        await self.go.wait()
        return await self._do("second")

    async def _do(self, name: str) -> object:
        self.done.append(name)
        return None


@pytest.mark.req("DUR-01", "DUR-02")
async def test_a_workflow_runs_by_itself_and_its_result_is_kept(make_durable) -> None:
    durable = make_durable()
    story = Story(durable)
    story.go.set()
    await durable.launch()
    await durable.start("story", "w1", {"name": "ada"})
    assert await durable.result("w1", 10) == {"told": "ada"}
    assert await durable.status("w1") == "done"
    await durable.start("story", "w1", {"name": "bob"})
    assert await durable.result("w1", 10) == {"told": "ada"}
    assert story.done == ["first", "second"]


@pytest.mark.req("DUR-02")
async def test_closing_interrupts_what_runs_and_the_next_launch_goes_on_with_it(make_durable) -> None:
    durable = make_durable()
    before = Story(durable)
    await durable.launch()
    await durable.start("story", "w1", {"name": "ada"})
    await asyncio.wait_for(before.waiting.wait(), seconds(10))
    await durable.close()
    await durable.close()
    again = make_durable()
    after = Story(again)
    after.go.set()
    await again.launch()
    assert await again.result("w1", 20) == {"told": "ada"}
    assert (before.done, after.done) == (["first"], ["second"])


async def test_recovered_workflows_run_on_the_main_loop(make_durable) -> None:
    durable = make_durable()
    await_loop: list[asyncio.AbstractEventLoop] = []
    story = Story(durable)
    await durable.launch()
    await durable.start("story", "w1", {"name": "ada"})
    await asyncio.wait_for(story.waiting.wait(), seconds(10))
    await durable.close()
    again = make_durable()

    @again.workflow("story")
    async def tell(argument: JsonObject) -> JsonObject:
        await_loop.append(asyncio.get_running_loop())
        return {}

    await again.launch()
    await again.result("w1", 20)
    assert await_loop == [asyncio.get_running_loop()]


async def test_the_loop_has_threads_again_after_closing(make_durable) -> None:
    durable = make_durable()
    await durable.launch()
    await durable.close()
    assert await asyncio.to_thread(lambda: "works") == "works"


async def test_an_error_that_ends_a_workflow_is_raised_again_for_whoever_asks(make_durable) -> None:
    durable = make_durable()

    @durable.workflow("refused")
    async def refused(argument: JsonObject) -> JsonObject:
        raise ProviderRefused("wrong key", hint="fix it")

    await durable.launch()
    await durable.start("refused", "w1", {})
    for _ in range(2):
        with pytest.raises(ProviderRefused, match="wrong key") as caught:
            await durable.result("w1", 10)
        assert caught.value.hint == "fix it"
    assert await durable.status("w1") == "failed"


async def test_a_mistake_in_a_workflow_ends_it_with_a_traceback_in_the_log(
    make_durable, caplog: pytest.LogCaptureFixture
) -> None:
    durable = make_durable()

    @durable.workflow("broken")
    async def broken(argument: JsonObject) -> JsonObject:
        return {"x": argument["missing"]}

    await durable.launch()
    await durable.start("broken", "w1", {})
    with pytest.raises(AnnabelleError, match="failed unexpectedly: KeyError"):
        await durable.result("w1", 10)
    assert any(record.exc_info for record in caplog.records if record.name.startswith("annabelle.durable"))


@pytest.mark.incident("I-27")
async def test_a_cancelled_workflow_stops_at_once_and_stays_stopped(make_durable) -> None:
    durable = make_durable()
    story = Story(durable)
    await durable.launch()
    await durable.start("story", "w1", {"name": "ada"})
    await asyncio.wait_for(story.waiting.wait(), seconds(10))
    await durable.cancel("w1")
    with pytest.raises(TurnCancelled):
        await durable.result("w1", 10)
    await durable.close()
    again = make_durable()
    after = Story(again)
    after.go.set()
    await again.launch()
    await again.start("story", "w1", {"name": "ada"})
    assert await again.status("w1") == "cancelled"
    assert await again.pending() == []
    assert (story.done, after.done) == (["first"], [])


async def test_cancelling_what_has_ended_changes_nothing(make_durable) -> None:
    durable = make_durable()
    story = Story(durable)
    story.go.set()
    await durable.launch()
    await durable.start("story", "w1", {"name": "ada"})
    await durable.result("w1", 10)
    await durable.cancel("w1")
    assert await durable.status("w1") == "done"


async def test_pending_workflows_are_listed_in_order(make_durable) -> None:
    durable = make_durable()
    Story(durable)
    await durable.launch()
    for number in range(3):
        await durable.start("story", f"w{number}", {"name": "x"})
    assert await durable.pending() == [PendingWorkflow(f"w{number}", "story") for number in range(3)]


async def test_a_result_that_takes_too_long_says_so(make_durable) -> None:
    durable = make_durable()
    Story(durable)
    await durable.launch()
    await durable.start("story", "w1", {"name": "x"})
    with pytest.raises(Unavailable, match=r"has not ended after 0\.05 s"):
        await durable.result("w1", 0.05)


async def test_what_was_never_begun_is_not_found(make_durable) -> None:
    durable = make_durable()
    await durable.launch()
    assert await durable.status("nothing") is None
    with pytest.raises(NotFound):
        await durable.result("nothing", 1)
    with pytest.raises(NotFound):
        await durable.signal("nothing", "topic", 1)


async def test_a_signal_wakes_who_waits_and_is_kept_for_who_will(make_durable) -> None:
    durable = make_durable()

    @durable.workflow("asks")
    async def asks(argument: JsonObject) -> JsonObject:
        return {"first": await durable.wait("yes?", 20), "second": await durable.wait("sure?", 20)}

    await durable.launch()
    await durable.start("asks", "w1", {})
    await durable.signal("w1", "sure?", {"answer": True})
    await durable.signal("w1", "yes?", "yes")
    assert await durable.result("w1", 20) == {"first": "yes", "second": {"answer": True}}


async def test_waiting_for_nothing_ends_with_nothing(make_durable) -> None:
    durable = make_durable()

    @durable.workflow("asks")
    async def asks(argument: JsonObject) -> JsonObject:
        return {"answer": await durable.wait("yes?", 0.05)}

    await durable.launch()
    await durable.start("asks", "w1", {})
    assert await durable.result("w1", 20) == {"answer": None}


async def test_a_workflow_may_begin_another_which_is_its_own(make_durable) -> None:
    durable = make_durable()

    @durable.workflow("outer")
    async def outer(argument: JsonObject) -> JsonObject:
        await durable.start("inner", "w2", {"from": "outer"})
        return {}

    @durable.workflow("inner")
    async def inner(argument: JsonObject) -> JsonObject:
        return {"heard": await durable.step("hear", lambda: asyncio.sleep(0, argument["from"]))}

    await durable.launch()
    await durable.start("outer", "w1", {})
    await durable.result("w1", 10)
    assert await durable.result("w2", 10) == {"heard": "outer"}


async def test_an_id_can_not_be_used_for_another_workflow(make_durable) -> None:
    durable = make_durable()
    Story(durable).go.set()

    @durable.workflow("other")
    async def other(argument: JsonObject) -> JsonObject:
        return {}

    await durable.launch()
    await durable.start("other", "w1", {})
    await durable.result("w1", 10)
    with pytest.raises(Conflict):
        await durable.start("story", "w1", {"name": "x"})


async def test_nothing_works_before_the_launch_or_after_the_end(make_durable) -> None:
    durable = make_durable()
    with pytest.raises(Unavailable):
        await durable.start("story", "w1", {})
    with pytest.raises(RuntimeError, match="inside a workflow"):
        await durable.sleep(1)
    await durable.launch()
    with pytest.raises(RuntimeError, match="after the launch"):
        durable.workflow("late")(lambda argument: argument)
    await durable.close()
    with pytest.raises(Unavailable):
        await durable.status("w1")


@pytest.mark.req("DUR-07")
async def test_a_second_process_on_the_file_is_turned_away(tmp_path: Path) -> None:
    first, second = (
        Durable(name="hub-tests", executor_id="hub", database_url=sqlite_url(tmp_path / "flows.db"), schema="flows")
        for _ in range(2)
    )
    await first.launch()
    with pytest.raises(AlreadyRunning, match=r"flows\.db is in use by process"):
        await second.launch()
    await first.close()
    await second.launch()
    await second.close()


async def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "flows.db").write_bytes(b"not a database at all" * 1000)
    durable = Durable(
        name="hub-tests", executor_id="hub", database_url=sqlite_url(tmp_path / "flows.db"), schema="flows"
    )
    with pytest.raises(StorageTrouble, match=r"flows\.db is damaged"):
        await durable.launch()


async def test_values_are_stored_as_json_and_never_as_pickle(
    make_durable, flows_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object) -> None:
        raise AssertionError("pickle was used")

    monkeypatch.setattr("dbos._serialization.pickle.dumps", refuse)
    monkeypatch.setattr("dbos._serialization.pickle.loads", refuse)
    durable = make_durable()

    @durable.workflow("all")
    async def everything(argument: JsonObject) -> JsonObject:
        await durable.step("s", lambda: asyncio.sleep(0, {"text": "nul \x00, half \ud800"}))
        await durable.wait("t", 0.01)
        return {"asked": argument}

    await durable.launch()
    await durable.start("all", "w1", {"text": "nul \x00"})
    assert await durable.result("w1", 10) == {"asked": {"text": "nul \x00"}}
    await durable.close()
    prefix = "" if flows_url.startswith("sqlite") else "flows."
    engine = make_engine(flows_url, pool_size=1)
    formats: set[str] = set()
    with engine.connect() as connection:
        for table in ("operation_outputs", "workflow_status"):
            formats.update(connection.execute(text(f"SELECT serialization FROM {prefix}{table}")).scalars())
    engine.dispose()
    assert formats == {"annabelle_json", "portable_json"}


async def test_a_step_is_stored_in_the_columns_that_dbos_fills_itself(make_durable) -> None:
    durable = make_durable()

    async def work() -> object:
        return {"text": "x"}

    @durable.workflow("both")
    async def both(argument: JsonObject) -> JsonObject:
        await durable.step("ours", work)
        await DBOS.run_step_async({"name": "theirs"}, work)
        return {}

    def read(database: Engine) -> dict[str, dict[str, object]]:
        prefix = "" if database.dialect.name == "sqlite" else "flows."
        with database.begin() as connection:
            rows = connection.execute(text(f"SELECT * FROM {prefix}operation_outputs")).mappings().all()
        return {row["function_name"]: {k: v for k, v in row.items() if v is not None} for row in rows}

    await durable.launch()
    await durable.start("both", "w1", {})
    await durable.result("w1", 10)
    rows = await durable.with_database(read)
    ours, theirs = rows["ours"], rows["theirs"]
    assert {k: type(v) for k, v in ours.items()} == {k: type(v) for k, v in theirs.items()}
    same = ("workflow_uuid", "serialization", "application_name")
    assert [ours[name] for name in same] == [theirs[name] for name in same]
    assert ours["function_id"] >= FIRST_NUMBER > theirs["function_id"]


class FullDisk:
    """Makes the flows file refuse to grow until it is told otherwise."""

    def __init__(self, durable: Durable) -> None:
        self._engine: Engine = durable._database

    def set(self, full: bool) -> None:
        with self._engine.begin() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar() if full else 1_000_000
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")


async def wait_for_log(caplog: pytest.LogCaptureFixture, words: str) -> None:
    async with asyncio.timeout(seconds(20)):
        while words not in caplog.text:  # noqa: ASYNC110  a log has no event
            await asyncio.sleep(0.01)


def big(durable: Durable, effects: list[str]) -> None:
    @durable.workflow("big")
    async def grow(argument: JsonObject) -> JsonObject:
        async def work() -> object:
            effects.append("grown")
            return "x" * 200_000

        return {"size": len(str(await durable.step("grow", work)))}


async def test_a_step_waits_for_a_full_disk_and_loses_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    durable, effects = _on_sqlite(tmp_path), list[str]()
    big(durable, effects)
    await durable.launch()
    disk = FullDisk(durable)
    await durable.start("big", "w0", {})
    await durable.result("w0", 10)
    await asyncio.to_thread(disk.set, True)
    await durable.start("big", "w1", {})
    await wait_for_log(caplog, "The disk is full")
    await asyncio.to_thread(disk.set, False)
    assert await durable.result("w1", 20) == {"size": 200_000}
    assert effects == ["grown", "grown"]
    await durable.close()


async def test_a_workflow_that_waited_too_long_for_the_disk_goes_on_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow_runs, "GIVE_UP_SECONDS", 0.0)
    monkeypatch.setattr(workflow_runs, "RESTART_SECONDS", 0.1)
    durable, effects = _on_sqlite(tmp_path), list[str]()
    big(durable, effects)
    await durable.launch()
    disk = FullDisk(durable)
    await durable.start("big", "w0", {})
    await durable.result("w0", 10)
    await asyncio.to_thread(disk.set, True)
    await durable.start("big", "w1", {})
    await wait_for_log(caplog, "w1: The disk is full")
    await asyncio.to_thread(disk.set, False)
    assert await durable.result("w1", 30) == {"size": 200_000}
    assert effects == ["grown"] * 3  # it was not on record, so it was done again
    await durable.close()


async def test_workflows_that_ended_long_ago_are_forgotten(make_durable, monkeypatch: pytest.MonkeyPatch) -> None:
    durable = make_durable()
    story = Story(durable)
    await durable.launch()
    await durable.start("story", "pending", {"name": "x"})
    await asyncio.wait_for(story.waiting.wait(), seconds(10))
    await durable.start("story", "ended", {"name": "x"})
    await durable.cancel("ended")
    await durable.close()
    monkeypatch.setattr(module, "KEEP_DAYS", -1)
    again = make_durable()
    Story(again)
    await again.launch()
    async with asyncio.timeout(seconds(20)):
        while await again.status("ended") is not None:  # noqa: ASYNC110  it ends in the database
            await asyncio.sleep(0.01)
    assert await again.status("pending") == "running"


def test_the_engines_log_goes_through_ours(make_durable, capfd: pytest.CaptureFixture[str]) -> None:
    make_durable()
    logging.getLogger("dbos").error("Asyncio task cancelled for workflow or step x")
    assert capfd.readouterr() == ("", "")


def _on_sqlite(folder: Path) -> Durable:
    return Durable(name="hub-tests", executor_id="hub", database_url=sqlite_url(folder / "flows.db"), schema="flows")


@pytest.mark.req("DUR-01")
async def test_a_start_whose_caller_leaves_is_not_left_half_way(make_durable) -> None:
    durable = make_durable()
    story = Story(durable)
    story.go.set()
    await durable.launch()
    leaving = asyncio.create_task(durable.start("story", "w", {"name": "x"}))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    await asyncio.wait_for(story.waiting.wait(), seconds(10))
    assert await durable.result("w", 10) == {"told": "x"}
