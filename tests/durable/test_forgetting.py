"""The engine's tables lose a text, and workflows go on from what is left of their records."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa

from annabelle.core.errors import AnnabelleError, NotAllowed
from annabelle.core.secrets.forget_mask import FORGOTTEN_MASK, ForgetMatcher
from annabelle.core.tools import JsonObject
from annabelle.durable import text_removal
from annabelle.durable.engine import Durable
from annabelle.store.text_removal import TextRemoval
from durable.conftest import MakeDurable
from support.timing import seconds

SECRET = "Zürich Vault 4711"
NEEDLE = ForgetMatcher([SECRET])


def written(engine: sa.Engine) -> str:
    schema = "flows" if engine.dialect.name == "postgresql" else None
    with engine.begin() as connection:
        names = sa.inspect(connection).get_table_names(schema=schema)
        prefix = f'"{schema}".' if schema else ""
        rows = (row for name in names for row in connection.exec_driver_sql(f'SELECT * FROM {prefix}"{name}"'))
        return "\n".join(str(cell) for row in rows for cell in row)


async def forget(durable: Durable) -> int:
    def work(engine: sa.Engine) -> int:
        count = text_removal.remove_text(engine, "flows", TextRemoval(NEEDLE, apply=True))
        text_removal.vacuum_tables(engine, "flows")
        return count

    return await durable.with_database(work)


@pytest.mark.req("TRU-09")
async def test_what_ended_and_what_runs_lose_the_text_and_what_runs_goes_on_without_it(make_durable: MakeDurable):
    durable = make_durable()
    reached, going, seen = asyncio.Event(), asyncio.Event(), list[object]()

    async def ended(argument: JsonObject) -> JsonObject:
        return {"answer": await durable.step("say", lambda: _said(argument["text"]))}

    async def long(_argument: JsonObject) -> JsonObject:
        text = await durable.step("read", lambda: _said(f"read {SECRET}"))
        seen.append(text)
        reached.set()
        await going.wait()
        return {"kept": text}

    durable.workflow("ended")(ended)
    durable.workflow("long")(long)
    await durable.launch()
    await durable.start("ended", "one", {"text": SECRET, "type": "text"})
    assert await durable.result("one", 20) == {"answer": SECRET}
    await durable.start("long", "two", {"id": "two"})
    await asyncio.wait_for(reached.wait(), seconds(20))
    assert NEEDLE.found_in(await durable.with_database(written))

    async with durable.suspended():
        assert await forget(durable) >= 3
        assert not NEEDLE.found_in(await durable.with_database(written))
    going.set()

    assert await durable.result("two", 30) == {"kept": FORGOTTEN_MASK}
    assert seen == [f"read {SECRET}", FORGOTTEN_MASK]
    assert await durable.result("one", 20) == {"answer": FORGOTTEN_MASK}
    assert not NEEDLE.found_in(await durable.with_database(written))
    assert await forget(durable) == 0


@pytest.mark.req("TRU-09")
async def test_what_a_workflow_failed_with_loses_the_text(make_durable: MakeDurable):
    durable = make_durable()

    async def broken() -> object:
        raise NotAllowed(f"{SECRET} is refused.")

    async def failing(_argument: JsonObject) -> JsonObject:
        return {"answer": await durable.step("break", broken)}

    durable.workflow("failing")(failing)
    await durable.launch()
    await durable.start("failing", "one", {})
    with pytest.raises(AnnabelleError):
        await durable.result("one", 20)
    assert NEEDLE.found_in(await durable.with_database(written))

    async with durable.suspended():
        assert await forget(durable) >= 1
        assert not NEEDLE.found_in(await durable.with_database(written))
    with pytest.raises(AnnabelleError) as left:
        await durable.result("one", 20)
    assert not NEEDLE.found_in(left.value.message)


async def test_a_workflow_begun_while_all_stands_still_runs_afterwards(make_durable: MakeDurable):
    durable, ran = make_durable(), asyncio.Event()

    async def work(_argument: JsonObject) -> JsonObject:
        ran.set()
        return {}

    durable.workflow("work")(work)
    await durable.launch()
    async with durable.suspended():
        await durable.start("work", "one", {})
        await durable.with_database(lambda _engine: None)
        assert not ran.is_set()
    assert await durable.result("one", 20) == {}


async def _said(text: object) -> object:
    return text
