"""What is stopped stays so, is written down, and a damaged file stops everything rather than nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import psutil
import pytest

from annabelle.cli import stop
from annabelle.cli.stop import HaltControl
from annabelle.core.contract import TurnResult
from annabelle.core.errors import AgentStopped, NotAllowed, NotFound, StorageTrouble
from annabelle.core.home import Home
from annabelle.core.tools import CallContext
from annabelle.hub.agents.halts import ALL, Halts
from annabelle.hub.conversations.turns import ActiveTurns
from annabelle.store.database import Database, sqlite_url
from annabelle.toolbox.process.kernel import kill_tree
from hub.hubs import wait_for
from support.timing import seconds

CONTEXT = CallContext(caller="agent", agent_id="annabelle", user_id="owner", message_id="msg_1", thread_id="thr_1")


@pytest.mark.req("TRU-06")
def test_what_was_stopped_is_stopped_for_whoever_reads_the_file_next(home: Home) -> None:
    halts = Halts(home.halts_file)
    halts.check("annabelle")
    halts.stop("annabelle", "owner")
    halts.add_owed_cancel("annabelle", "msg_1")
    halts.save()
    later = Halts(home.halts_file)
    with pytest.raises(AgentStopped, match="annabelle was stopped"):
        later.check("annabelle")
    later.check("other")
    assert later.owed_cancels("annabelle") == ("msg_1",)
    later.remove_owed_cancel("annabelle", "msg_1")
    later.stop(ALL, "owner")
    with pytest.raises(AgentStopped, match="Everything"):
        later.check("other")
    assert later.find("other") is not None
    assert later.resume(ALL)
    assert later.find("other") is None
    assert not later.resume(ALL)
    later.save()
    assert Halts(home.halts_file).owed_cancels("annabelle") == ()
    Halts(home.halts_file).check("annabelle")


@pytest.mark.req("TRU-06", "CMD-02")
@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"agents": 5}', b"\xff\xfe"])
def test_a_damaged_file_stops_everything(home: Home, damage: bytes) -> None:
    home.halts_file.write_bytes(damage)
    halts = Halts(home.halts_file)
    assert halts.damaged
    with pytest.raises(AgentStopped):
        halts.check("annabelle")


def test_a_stop_holds_also_where_it_can_not_be_kept(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    halts = Halts(home.halts_file)
    halts.stop(ALL, "owner")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("annabelle.hub.agents.halts.write_atomically", full)
    with pytest.raises(StorageTrouble, match="can not be kept"):
        halts.save()
    with pytest.raises(AgentStopped):
        halts.check("annabelle")


@pytest.mark.req("TRU-06")
def test_without_a_hub_the_terminal_writes_what_the_next_one_reads(home: Home) -> None:
    told = HaltControl(home).stop("annabelle")
    assert told.how == "written"
    assert Halts(home.halts_file).agents == ("annabelle",)
    with pytest.raises(NotFound, match="There is no agent nobody"):
        HaltControl(home).stop("nobody")
    assert HaltControl(home).resume("annabelle").message == "annabelle goes on when Annabelle starts."
    assert HaltControl(home).resume(ALL).message == "Nothing was stopped."


@pytest.fixture
def hung_hub(home: Home, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A hub of this home that does not answer; the ids of the processes that were killed."""
    killed: list[int] = []
    home.hub_file.with_name(f"{home.hub_file.name}.lock").write_text("4711")
    monkeypatch.setattr(stop, "is_hub", lambda _pid: True)
    monkeypatch.setattr(stop, "_kill_hub", killed.append)
    return killed


@pytest.mark.req("TRU-06")
@pytest.mark.incident("I-27")
def test_a_stop_holds_though_the_hub_wrote_what_it_knew_in_its_last_moment(
    home: Home, hung_hub: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_the_hub = Halts(home.halts_file)

    def kill(pid: int) -> None:
        of_the_hub.save()
        hung_hub.append(pid)

    monkeypatch.setattr(stop, "_kill_hub", kill)
    assert HaltControl(home).stop(ALL).how == "killed"
    assert hung_hub == [4711]
    assert Halts(home.halts_file).everything is not None


@pytest.mark.req("TRU-06")
@pytest.mark.incident("I-27")
def test_a_hub_that_hangs_is_ended_also_on_a_full_disk(
    home: Home, hung_hub: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("annabelle.hub.agents.halts.write_atomically", full)
    with pytest.raises(StorageTrouble, match="can not be kept"):
        HaltControl(home).stop(ALL)
    assert hung_hub == [4711]


@pytest.mark.req("TRU-06", "LOOP-09")
async def test_a_turn_that_is_abandoned_ends_at_once_whatever_hangs_below(home: Home) -> None:
    database = await Database.open(sqlite_url(home.database_file), backups=home.backups)
    turns, entered = ActiveTurns(database), asyncio.Event()

    async def hangs() -> TurnResult:
        entered.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.wait_for(let_go.wait(), seconds(10))  # as a process that can not be killed yet
                raise

    let_go = asyncio.Event()
    try:
        with turns.open(CONTEXT):
            assert turns.running_for(["annabelle"]) == {"msg_1": "annabelle"}
            assert turns.running_for(["other"]) == {}
            working = asyncio.create_task(turns.run_unless_abandoned("msg_1", hangs()))
            await asyncio.wait_for(entered.wait(), seconds(10))
            turns.cancel("msg_1")
            with pytest.raises(NotAllowed, match="stopped"):
                await turns.context("msg_1", "annabelle")
            turns.abandon("msg_1")
            assert await asyncio.wait_for(working, seconds(10)) is None
        turns.abandon("msg_1")  # it is over: nothing happens
        let_go.set()
    finally:
        await database.close()


@pytest.mark.req("TRU-06")
@pytest.mark.incident("I-27")
def test_a_stopped_process_is_killed_with_a_grandchild_that_left_its_group() -> None:
    code = "import subprocess, time; subprocess.Popen(['sleep', '74.5'], start_new_session=True); time.sleep(74)"
    parent = subprocess.Popen([sys.executable, "-c", code])
    below = wait_for(lambda: psutil.Process(parent.pid).children(), "the grandchild")
    os.kill(parent.pid, signal.SIGSTOP)
    kill_tree(parent.pid)
    assert parent.wait(seconds(10)) == -signal.SIGKILL
    _, alive = psutil.wait_procs(below, timeout=seconds(10))
    assert not alive
    kill_tree(parent.pid)  # one that is gone is no trouble
