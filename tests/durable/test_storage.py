"""Where the engine keeps its workflows: one process on a file, JSON in the tables, and a disk that may be full."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from dbos import DBOS
from sqlalchemy import Engine, text

from annabelle.core.errors import AlreadyRunning, StorageTrouble
from annabelle.core.tools import JsonObject
from annabelle.durable import workflow_runs
from annabelle.durable.engine import Durable
from annabelle.durable.steps import FIRST_NUMBER
from annabelle.store.database import sqlite_url
from annabelle.store.engine import make_engine
from support.timing import seconds


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


def _on_sqlite(folder: Path) -> Durable:
    return Durable(name="hub-tests", executor_id="hub", database_url=sqlite_url(folder / "flows.db"), schema="flows")
