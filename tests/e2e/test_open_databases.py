"""Whatever reads the files of open databases leaves them open: what is written afterwards is kept (I-22)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import httpx2 as httpx
import pytest

from annabelle.store.engine import driver
from e2e.days import MakeHub
from hub.hubs import HubProcess
from support.timing import seconds


def preview_forgetting(hub: HubProcess) -> httpx.Response:
    return hub.http.post("/memory/forget", json={"text": "nothing like it"}, timeout=seconds(120))


def forget(hub: HubProcess) -> httpx.Response:
    return hub.http.post("/memory/forget", json={"text": "nothing like it", "preview": False}, timeout=seconds(120))


def back_up(hub: HubProcess) -> httpx.Response:
    return hub.http.post("/backups", timeout=seconds(120))


@pytest.mark.incident("I-22")
@pytest.mark.req("TRU-09", "BEY-06")
@pytest.mark.parametrize("look", [preview_forgetting, forget, back_up])
def test_a_program_that_closes_a_database_the_hub_has_looked_at_loses_nothing(
    make_hub: MakeHub, look: Callable[[HubProcess], httpx.Response]
) -> None:
    hub = make_hub().start()
    hub.say("first")
    assert look(hub).is_success
    files = [hub.home.database_file, hub.home.flows_file, hub.home.memory_file]
    for file in files:
        with contextlib.closing(driver.connect(str(file))) as other:
            other.execute("SELECT count(*) FROM sqlite_master").fetchone()
    assert [file.name for file in files if not file.with_name(f"{file.name}-wal").exists()] == []
    thread = hub.say("second")["threadId"]
    hub.kill()
    hub.start()
    assert "second" in hub.http.get(f"/threads/{thread}/messages").text
