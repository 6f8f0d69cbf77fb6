"""The guard with a real guardian process: killed, hanging, slow, given up, switched off, and flooded."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from annabelle.core.errors import NotAllowed, ScannerDown
from annabelle.core.tools import CallContext, ToolResult
from annabelle.toolbox.call_hooks import CallHooks, GuardConfig, GuardRules
from annabelle.toolbox.catalogue import AgentPolicy
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.facade import Toolbox, ToolServers
from support import timing
from support.guarding import MemoryAudit
from support.toolbox import QUICK, MemoryJournal, eventually

WithServers = Callable[..., ToolboxConfig]
StartGuarded = Callable[..., Awaitable[Toolbox]]
AGENT = CallContext(caller="agent", agent_id="a", user_id="owner")


@pytest.fixture
async def guarded(with_servers: WithServers, journal: MemoryJournal) -> AsyncIterator[StartGuarded]:
    """Start a toolbox of the watchman and the witness; rules and time as the test says."""
    async with AsyncExitStack() as stack:

        async def started(rules: GuardRules | None = None, seconds: float = 10, enabled: bool = True) -> Toolbox:
            config = with_servers(
                "watchman", "witness", limits=replace(QUICK, ping_seconds=0.3, stop_grace_seconds=0.3)
            )
            watch = GuardConfig(lambda agent_id: rules or GuardRules(), seconds, enabled)
            toolbox = Toolbox(ToolServers(config, journal, hooks=CallHooks(audit=MemoryAudit(), guard_config=watch)))
            stack.push_async_callback(toolbox.stop)
            await asyncio.wait_for(toolbox.start(), timing.seconds(60))
            return toolbox

        yield started


def pid(toolbox: Toolbox) -> int:
    found = next(status.pid for status in toolbox.servers() if status.name == "watchman")
    assert found is not None
    return found


def seen(tmp_path: Path) -> list[str]:
    """What the two servers noted: scans and acts, in order."""
    file = tmp_path / "witness.txt"
    return file.read_text().splitlines() if file.exists() else []


async def act(toolbox: Toolbox, word: str, context: CallContext = AGENT) -> ToolResult:
    return await toolbox.call("witness_act", {"word": word}, context, AgentPolicy())


@pytest.mark.req("GRD-02", "GRD-01")
async def test_a_call_is_read_before_and_after_by_a_guardian_nobody_else_can_talk_to(
    guarded: StartGuarded, tmp_path: Path
) -> None:
    toolbox = await guarded()
    assert not (await act(toolbox, "hello")).is_error
    assert seen(tmp_path) == ["scan tool input witness_act", "hello", "scan tool output witness_act"]
    assert (await act(toolbox, "EVIL")).is_error
    assert "EVIL" not in seen(tmp_path)
    assert [spec.name for spec in toolbox.tools().tools if spec.server == "watchman"] == []
    assert [spec.name for spec in toolbox.tools(AgentPolicy()).tools if spec.server == "watchman"] == []
    for caller in ("agent", "api", "cli"):
        context = CallContext(caller=caller, agent_id="a", user_id="owner")
        with pytest.raises(NotAllowed):
            await toolbox.call("watchman_scan_content", {"content": "x"}, context, AgentPolicy())


@pytest.mark.req("GRD-05")
async def test_a_guardian_that_is_killed_under_a_scan_is_asked_once_more_in_its_next_life(
    guarded: StartGuarded, tmp_path: Path
) -> None:
    toolbox = await guarded()
    marker = tmp_path / "marker"
    marker.touch()
    before = pid(toolbox)
    assert not (await act(toolbox, f"DIE {marker}")).is_error
    assert pid(toolbox) != before
    assert seen(tmp_path).count("scan tool input witness_act") == 2
    assert [line for line in seen(tmp_path) if line.startswith("DIE")] == [f"DIE {marker}"], "it acted once"


@pytest.mark.req("GRD-05")
@pytest.mark.parametrize("fail_mode", ["closed", "open"])
async def test_a_guardian_that_hangs_is_started_again_and_meanwhile_the_setting_holds(
    guarded: StartGuarded, tmp_path: Path, fail_mode: str
) -> None:
    toolbox = await guarded(GuardRules(fail_mode="open" if fail_mode == "open" else "closed"), seconds=0.3)
    hanging = pid(toolbox)
    os.kill(hanging, signal.SIGSTOP)
    result = await act(toolbox, "a")
    if fail_mode == "closed":
        assert result.error is not None
        assert result.error.code == "scanner_down"
        assert "did not answer within 0.3 seconds" in result.text
        assert seen(tmp_path) == []
    else:
        assert (result.is_error, result.labels) == (False, ("unscanned",))
        assert "a" in seen(tmp_path)
    await eventually(lambda: pid_or_none(toolbox) not in (None, hanging))
    healed = await act(toolbox, "b")
    assert (healed.is_error, healed.labels) == (False, ())


def pid_or_none(toolbox: Toolbox) -> int | None:
    return next(status.pid if status.available else None for status in toolbox.servers() if status.name == "watchman")


@pytest.mark.req("GRD-05")
async def test_a_scan_that_takes_too_long_is_over_and_a_guardian_that_is_merely_slow_stays(
    guarded: StartGuarded,
) -> None:
    toolbox = await guarded(seconds=0.3)
    before = pid(toolbox)
    result = await act(toolbox, "SLOW")
    assert result.error is not None
    assert result.error.code == "scanner_down"
    assert not (await act(toolbox, "quick")).is_error
    assert pid(toolbox) == before


@pytest.mark.req("GRD-05")
async def test_a_guardian_that_was_given_up_blocks_before_anything_happens_until_it_is_started_again(
    guarded: StartGuarded, tmp_path: Path
) -> None:
    toolbox = await guarded()
    victim: int | None = None
    for _ in range(QUICK.max_restarts + 1):
        await eventually(lambda before=victim: pid_or_none(toolbox) not in (None, before))
        victim = pid(toolbox)
        os.kill(victim, signal.SIGKILL)
    await eventually(lambda: state(toolbox) == "down")
    result = await act(toolbox, "a")
    assert "The guardian is not running (down)." in result.text
    assert seen(tmp_path) == []
    await toolbox.restart("watchman")
    assert not (await act(toolbox, "a")).is_error


def state(toolbox: Toolbox) -> str:
    return next(status.state for status in toolbox.servers() if status.name == "watchman")


@pytest.mark.req("GRD-05")
async def test_switched_off_nothing_is_scanned_and_no_guardian_runs(guarded: StartGuarded, tmp_path: Path) -> None:
    toolbox = await guarded(GuardRules(enabled=False), enabled=False)
    assert [status.name for status in toolbox.servers()] == ["witness"]
    assert not (await act(toolbox, "EVIL")).is_error
    assert seen(tmp_path) == ["EVIL"]


async def test_without_a_guardian_closed_says_so(with_servers: WithServers, journal: MemoryJournal) -> None:
    watch = GuardConfig(lambda agent_id: GuardRules())
    toolbox = Toolbox(ToolServers(with_servers("witness"), journal, hooks=CallHooks(guard_config=watch)))
    await asyncio.wait_for(toolbox.start(), timing.seconds(60))
    try:
        result = await act(toolbox, "a")
    finally:
        await toolbox.stop()
    assert "The guardian is not running (none is set up)." in result.text


async def test_equal_questions_at_the_same_time_are_one_and_bad_content_harms_nobody(
    guarded: StartGuarded, tmp_path: Path
) -> None:
    toolbox = await guarded()
    scanner = toolbox.guard.scanner
    assert scanner is not None
    asking = [scanner.scan({"a": ["same"]}, source="s", context="message") for _ in range(20)]
    assert {found.risk for found in await asyncio.gather(*asking)} == {"none"}
    assert seen(tmp_path) == ["scan message s"]
    for content in ("\ud800 half a character", {"n": float("nan")}, "\x00\x01\x02" * 1000, "x" * 2_000_000):
        assert (await scanner.scan(content, source="s", context="tool output")).risk == "none"
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ScannerDown, match="nested too deeply"):
        await scanner.scan(deep, source="s", context="tool output")
    await asyncio.gather(*(act(toolbox, f"word {number}") for number in range(100)))
    assert sum(line.startswith("word ") for line in seen(tmp_path)) == 100


async def test_who_asked_may_go_away_without_taking_the_answer_from_the_others(guarded: StartGuarded) -> None:
    scanner = (await guarded()).guard.scanner
    assert scanner is not None
    first = asyncio.create_task(scanner.scan("EVIL", source="s", context="message"))
    second = asyncio.create_task(scanner.scan("EVIL", source="s", context="message"))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).risk == "high"
    assert first.cancelled()


async def test_a_call_that_is_replayed_is_not_scanned_again(guarded: StartGuarded, tmp_path: Path) -> None:
    toolbox = await guarded()
    call = AGENT.model_copy(update={"call_id": "m:1:0"})
    first = await act(toolbox, "once", call)
    scans = len(seen(tmp_path))
    again = await act(toolbox, "once", call)
    assert again == first.model_copy(update={"replayed": True})
    assert len(seen(tmp_path)) == scans


async def test_a_stop_while_a_hanging_guardian_is_started_again_leaves_no_process(guarded: StartGuarded) -> None:
    toolbox = await guarded(seconds=0.2)
    hanging = pid(toolbox)
    os.kill(hanging, signal.SIGSTOP)
    assert (await act(toolbox, "a")).is_error
    await eventually(lambda: pid_or_none(toolbox) != hanging)  # being stopped, or new already
    await toolbox.stop()
    assert toolbox.servers() == []
