"""Real server processes: started, called, broken and started again."""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from annabelle.core.errors import InvalidArguments, NotFound, OutcomeUnknown, ServerDown, ToolTimeout, UnknownTool
from annabelle.core.secrets.redactor import MASK
from annabelle.core.tools import CallContext
from annabelle.toolbox.catalogue import AgentPolicy
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.mcp import stdio
from annabelle.toolbox.middleware import record
from annabelle.toolbox.middleware.record import FAILPOINTS
from annabelle.toolbox.status import ServerStatus
from support.toolbox import QUICK, MemoryJournal, alive, eventually

Start = Callable[[ToolboxConfig], Awaitable[Toolbox]]
WithServers = Callable[..., ToolboxConfig]
AsAgent = Callable[[str], CallContext]
ANY = AgentPolicy()


def status(toolbox: Toolbox, name: str) -> ServerStatus:
    return next(server for server in toolbox.servers() if server.name == name)


def effects(config: ToolboxConfig) -> list[str]:
    path = Path(config.environment["WITNESS_FILE"])
    return path.read_text().split("\n")[:-1] if path.exists() else []


def pid_of(toolbox: Toolbox, name: str) -> int:
    pid = status(toolbox, name).pid
    assert pid is not None
    return pid


@pytest.fixture(params=["forkserver", "plain"])
def both_ways(request: pytest.FixtureRequest, with_servers: WithServers) -> WithServers:
    """Forked from the fork server, and each on its own: behaviour must be the same."""
    return lambda *names: with_servers(*names, use_forkserver=request.param == "forkserver")


@pytest.mark.req("HUB-01", "HUB-03", "RTR-01", "TRC-03")
@pytest.mark.incident("I-11")
async def test_a_server_is_listed_and_called_and_has_nothing_of_anyone_else(
    both_ways: WithServers, start: Start, person: CallContext
) -> None:
    others = {*psutil.Process().children(recursive=True)}
    config = replace(both_ways("echo", "witness"), log_level="debug")
    toolbox = await start(config)
    family = {*psutil.Process().children(recursive=True)} - others
    assert [tool.name for tool in toolbox.tools().tools if tool.server == "echo"] == [
        "echo_descriptors",
        "echo_fail",
        "echo_mutter",
        "echo_say",
        "echo_surroundings",
    ]
    result = await toolbox.call("echo_say", {"text": "hällo"}, person)
    assert result.structured == {"said": "hällo"}
    assert result.duration_ms > 0
    assert status(toolbox, "echo").state == "ready"
    assert status(toolbox, "echo").protocol == "2026-07-28"
    seen = (await toolbox.call("echo_surroundings", {}, person)).structured
    assert seen is not None
    assert seen["environment"] == {
        "PATH": config.environment["PATH"],
        "HOME": config.environment["HOME"],
        "ANNABELLE_HOME": str(config.home.root),
        "LOG_LEVEL": "debug",
        "ECHO_SECRET": MASK,
    }, "that it has the value is shown below; what it says of it is masked"
    found = (await toolbox.call("echo_descriptors", {}, person)).structured
    assert found is not None
    names = [str(target) for target in found.values()]
    assert len({name for name in names if name.startswith("pipe:")}) == 3, "its input, its output and what it prints"
    assert sum(name.startswith("socket:") for name in names) <= 2, "only its own event loop's"
    assert not [name for name in names if "memfd" in name or name.endswith(("witness.log", "forkserver.log"))]
    assert (await toolbox.call("echo_fail", {}, person)).is_error
    await eventually(lambda: "as asked" in (config.home.logs / "echo.log").read_text())
    _expect_secret_in_its_own_process_only(toolbox, family)


def _expect_secret_in_its_own_process_only(toolbox: Toolbox, family: set[psutil.Process]) -> None:
    assert len(family) >= 2
    for process in family:
        for place in ("environ", "cmdline"):
            assert b"secret" not in _shown(process.pid, place), f"{process.cmdline()} shows it in its {place}"
    own = psutil.Process(pid_of(toolbox, "echo"))
    for process in family - {own, *own.children()}:
        assert not _in_memory(process.pid, b"echo-only-secret-1"), f"{process.cmdline()} holds it in memory"
    assert _in_memory(own.pid, b"echo-only-secret-1"), "or this test could not fail"


def _shown(pid: int, place: str) -> bytes:
    return Path(f"/proc/{pid}/{place}").read_bytes()


def _in_memory(pid: int, matcher: bytes) -> bool:
    """Look through everything a process may write to."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span, rights, *_ = line.split()
            if rights.startswith("rw") and "[v" not in line:
                low, high = (int(number, 16) for number in span.split("-"))
                memory.seek(low)
                try:
                    if matcher in memory.read(high - low):
                        return True
                except OSError:
                    continue
    return False


@pytest.mark.req("HUB-02")
async def test_the_guardian_is_ready_before_any_other_server_starts(with_servers: WithServers, start: Start) -> None:
    config = with_servers("guard", "crashing", "echo", limits=replace(QUICK, max_restarts=1))
    toolbox = await start(config)
    assert effects(config)[0] == "guard ready"
    assert status(toolbox, "guard").role == "guardian"
    assert status(toolbox, "echo").available


@pytest.mark.req("RTR-03")
async def test_wrong_arguments_never_reach_the_server(
    with_servers: WithServers, start: Start, person: CallContext
) -> None:
    config = with_servers("witness")
    toolbox = await start(config)
    with pytest.raises(InvalidArguments, match="word"):
        await toolbox.call("witness_act", {}, person)
    with pytest.raises(InvalidArguments, match="wurd"):
        await toolbox.call("witness_act", {"word": "a", "wurd": "b"}, person)
    with pytest.raises(UnknownTool, match="witness_akt") as unknown:
        await toolbox.call("witness_akt", {"word": "a"}, person)
    assert "witness_act" in (unknown.value.hint or "")
    assert effects(config) == []


@pytest.mark.req("TRC-01")
async def test_the_server_learns_who_calls(with_servers: WithServers, start: Start) -> None:
    toolbox = await start(with_servers("echo"))
    context = CallContext(
        caller="agent", agent_id="a", user_id="u", chat_id="c", call_id="m:1:0", message_id="m", trace_id="tr_1"
    )
    seen = (await toolbox.call("echo_surroundings", {}, context, ANY)).structured
    assert seen is not None
    assert seen["sent"] == {
        "caller": "agent",
        "trace_id": "tr_1",
        "agent_id": "a",
        "user_id": "u",
        "chat_id": "c",
        "call_id": "m:1:0",
        "message_id": "m",
    }


@pytest.mark.req("RTR-04", "DUR-02")
async def test_a_call_that_takes_too_long_is_cancelled_at_the_server(
    with_servers: WithServers, start: Start, person: CallContext, config: ToolboxConfig
) -> None:
    config = with_servers("witness", environment={**config.environment, "WITNESS_MCP_TIMEOUT": "0.3"})
    toolbox = await start(config)
    with pytest.raises(ToolTimeout, match=r"witness_hang did not answer within 0\.3 seconds"):
        await toolbox.call("witness_hang", {"word": "a"}, person)
    await eventually(lambda: "a cancelled" in effects(config))
    assert (await toolbox.call("witness_act", {"word": "b"}, person)).text == "done", "the server is not harmed"
    assert status(toolbox, "witness").restarts == 0


async def test_a_caller_that_leaves_cancels_a_call_without_an_id(
    with_servers: WithServers, start: Start, person: CallContext
) -> None:
    config = with_servers("witness")
    toolbox = await start(config)
    calling = asyncio.create_task(toolbox.call("witness_hang", {"word": "a"}, person))
    await eventually(lambda: "a began" in effects(config))
    calling.cancel()
    await eventually(lambda: "a cancelled" in effects(config))


@pytest.mark.req("HUB-03")
async def test_garbage_on_stdout_does_no_harm(with_servers: WithServers, start: Start, person: CallContext) -> None:
    toolbox = await start(with_servers("awkward"))
    assert (await toolbox.call("awkward_garbage", {"count": 500}, person)).text == "still here"
    assert status(toolbox, "awkward").garbage_lines == 500
    assert status(toolbox, "awkward").restarts == 0


@pytest.mark.req("HUB-03")
async def test_a_result_of_50_megabytes_is_one_clear_sentence(
    with_servers: WithServers, start: Start, person: CallContext
) -> None:
    toolbox = await start(with_servers("awkward"))
    before = psutil.Process().memory_info().rss
    result = await toolbox.call("awkward_huge", {"count": 50_000_000}, person)
    assert result.is_error
    assert result.text.startswith("The result of awkward_huge was too large: 50")
    assert psutil.Process().memory_info().rss - before < 40_000_000
    assert (await toolbox.call("awkward_huge", {"count": 10}, person)).text == "x" * 10
    assert status(toolbox, "awkward").restarts == 0


async def test_a_result_over_the_limit_is_cut_with_a_note(
    with_servers: WithServers, start: Start, person: CallContext
) -> None:
    toolbox = await start(with_servers("awkward", result_max_bytes=1000))
    result = await toolbox.call("awkward_huge", {"count": 5000}, person)
    assert not result.is_error
    assert result.text.startswith("x" * 1000 + "\n[cut: only the first 1000 of 5000 bytes")


@pytest.mark.req("RTR-06")
async def test_a_changed_tool_list_is_seen_at_once(
    with_servers: WithServers, start: Start, person: CallContext
) -> None:
    toolbox = await start(with_servers("awkward"))
    versions: list[str] = []
    toolbox.on_change(versions.append)
    before = toolbox.tools().version
    await toolbox.call("awkward_change", {}, person)
    await eventually(lambda: "awkward_added" in [tool.name for tool in toolbox.tools().tools])
    assert versions == [toolbox.tools().version]
    assert toolbox.tools().version != before
    assert (await toolbox.call("awkward_added", {"count": 1}, person)).text == "still here"


@pytest.mark.req("HUB-03")
async def test_a_killed_server_comes_back_with_its_tools_and_leaves_no_descriptor(
    both_ways: WithServers, start: Start, person: CallContext
) -> None:
    toolbox = await start(both_ways("echo", "witness"))
    before = _piped_descriptors()
    first, bystander, version = pid_of(toolbox, "echo"), pid_of(toolbox, "witness"), toolbox.tools().version
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: not alive(first))
    assert (await toolbox.call("echo_say", {"text": "back"}, person)).structured == {"said": "back"}
    assert status(toolbox, "echo").restarts == 1
    assert status(toolbox, "echo").pid != first
    assert pid_of(toolbox, "witness") == bystander, "a crash of one is no concern of another"
    assert toolbox.tools().version == version
    assert status(toolbox, "echo").last_error in ("its process ended by signal 9", "its process ended with code 137")
    await toolbox.restart("echo")
    os.kill(pid_of(toolbox, "echo"), signal.SIGKILL)
    await toolbox.call("echo_say", {"text": "a"}, person)
    await eventually(lambda: _piped_descriptors() <= before)


def _piped_descriptors() -> int:
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    targets = [os.readlink(link) for link in links if os.path.lexists(link)]
    return sum("pipe:" in target or "pidfd" in target or "memfd" in target for target in targets)


@pytest.mark.req("HUB-03", "DUR-03")
async def test_a_call_that_died_with_its_server_is_unknown_and_not_made_again(
    both_ways: WithServers, start: Start, as_agent: AsAgent, journal: MemoryJournal, tmp_path: Path
) -> None:
    config = both_ways("witness")
    toolbox = await start(config)
    marker = tmp_path / "marker"
    marker.touch()
    call = {"word": "once", "die": "after", "marker": str(marker)}
    with pytest.raises(OutcomeUnknown, match="witness_act"):
        await toolbox.call("witness_act", call, as_agent("m:1:0"), ANY)
    assert effects(config) == ["once"]
    assert journal.state("m:1:0") == "unknown"
    with pytest.raises(OutcomeUnknown):
        await toolbox.call("witness_act", call, as_agent("m:1:0"), ANY)
    assert effects(config) == ["once"]


@pytest.mark.req("HUB-03", "DUR-03")
async def test_a_repeatable_call_that_died_with_its_server_is_made_again(
    with_servers: WithServers, start: Start, as_agent: AsAgent, journal: MemoryJournal, tmp_path: Path
) -> None:
    config = with_servers("witness")
    toolbox = await start(config)
    marker = tmp_path / "marker"
    marker.touch()
    call = {"word": "again", "die": "before", "marker": str(marker)}
    assert (await toolbox.call("witness_act_again", call, as_agent("m:1:0"), ANY)).text == "done"
    assert effects(config) == ["again"]
    assert journal.state("m:1:0") == "finished"


@pytest.mark.req("HUB-04")
async def test_a_server_that_misses_three_health_checks_is_restarted(
    with_servers: WithServers, start: Start, person: CallContext
) -> None:
    pace = replace(QUICK, ping_every_seconds=0.05, ping_seconds=0.2)
    toolbox = await start(with_servers("awkward", "echo", limits=pace))
    deaf = pid_of(toolbox, "awkward")
    calling = asyncio.create_task(toolbox.call("awkward_freeze", {}, person))
    await eventually(lambda: status(toolbox, "awkward").restarts == 1)
    with pytest.raises(OutcomeUnknown, match="awkward_freeze"):
        await calling
    await eventually(lambda: status(toolbox, "awkward").available)
    assert not alive(deaf)
    assert status(toolbox, "echo").restarts == 0, "a server that answers is left alone"
    assert status(toolbox, "echo").missed_pings == 0


@pytest.mark.incident("I-18")
async def test_a_server_that_dies_in_a_loop_is_given_up_and_said_so(
    with_servers: WithServers, start: Start, person: CallContext
) -> None:
    config = with_servers("crashing", "echo")
    toolbox = await start(config)
    notices: list[str] = []
    toolbox.on_notice(lambda notice: notices.append(f"{notice.kind}: {notice.text}"))
    await eventually(lambda: status(toolbox, "crashing").state == "down")
    assert len(effects(config)) == QUICK.max_restarts + 1
    assert status(toolbox, "crashing").restarts == QUICK.max_restarts
    [notice] = notices
    assert notice.startswith("flapping: Crashing ended 5 times and stays down now")
    assert "the moon is in the wrong place" in notice
    assert (await toolbox.call("echo_say", {"text": "calm"}, person)).structured == {"said": "calm"}
    assert (await toolbox.restart("crashing")).restarts == QUICK.max_restarts + 1
    await eventually(lambda: len(effects(config)) > QUICK.max_restarts + 1)


async def test_a_server_that_is_down_says_so_and_its_tools_are_gone(
    with_servers: WithServers, start: Start, person: CallContext
) -> None:
    toolbox = await start(with_servers("witness", limits=replace(QUICK, max_restarts=1)))
    for expected in (1, 1):
        pid = pid_of(toolbox, "witness")
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda pid=pid: status(toolbox, "witness").pid != pid)
        await eventually(lambda: status(toolbox, "witness").state in ("ready", "down"))
        assert status(toolbox, "witness").restarts == expected
    assert status(toolbox, "witness").state == "down"
    assert toolbox.tools().tools == ()
    with pytest.raises(UnknownTool):
        await toolbox.call("witness_act", {"word": "a"}, person)
    await toolbox.restart("witness")
    assert (await toolbox.call("witness_act", {"word": "a"}, person)).text == "done"
    with pytest.raises(NotFound):
        await toolbox.restart("nobody")


async def test_a_server_that_says_nothing_does_not_hold_up_the_others(
    with_servers: WithServers, start: Start, person: CallContext
) -> None:
    toolbox = await start(with_servers("mute", "echo", limits=replace(QUICK, start_seconds=4, max_restarts=1)))
    assert status(toolbox, "echo").available
    assert status(toolbox, "mute").last_error == "it did not list its tools within 4 seconds"


async def test_a_call_to_a_server_that_does_not_come_back_ends_with_server_down(
    with_servers: WithServers, start: Start, person: CallContext
) -> None:
    pace = replace(QUICK, restart_base_seconds=30, wait_for_restart_seconds=0.2)
    toolbox = await start(with_servers("echo", limits=pace))
    pid = pid_of(toolbox, "echo")
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: status(toolbox, "echo").state == "restarting")
    with pytest.raises(ServerDown, match="Echo is not running"):
        await toolbox.call("echo_say", {"text": "a"}, person)


@pytest.mark.req("HUB-05")
@pytest.mark.incident("I-25")
async def test_a_stop_leaves_nothing(both_ways: WithServers, start: Start, person: CallContext) -> None:
    others = psutil.Process().children(recursive=True)
    toolbox = await start(replace(both_ways("awkward", "mute"), limits=replace(QUICK, start_seconds=6)))
    left = (await toolbox.call("awkward_leave_a_child", {}, person)).structured
    assert left is not None
    frozen = asyncio.create_task(toolbox.call("awkward_freeze", {}, person))
    family = [process for process in psutil.Process().children(recursive=True) if process not in others]
    assert left["child"] in [process.pid for process in family]
    await toolbox.stop()
    await toolbox.stop()
    with pytest.raises(OutcomeUnknown):
        await frozen
    assert [process for process in family if alive(process.pid)] == []


async def test_a_secret_in_the_last_words_of_a_server_is_not_repeated(
    with_servers: WithServers, start: Start, config: ToolboxConfig
) -> None:
    environment = {**config.environment, "MOON_API_KEY": "the moon is in"}
    pace = replace(QUICK, max_restarts=1)
    toolbox = await start(with_servers("crashing", environment=environment, limits=pace))
    assert status(toolbox, "crashing").last_error == (
        "its process ended with code 3; it said: «redacted» the wrong place"
    )


async def test_every_named_failpoint_stands_in_the_way_of_a_call(
    with_servers: WithServers, start: Start, as_agent: AsAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: list[str] = []
    for module in (record, stdio):
        monkeypatch.setattr(module, "failpoint", reached.append)
    toolbox = await start(with_servers("echo"))
    await toolbox.call("echo_say", {"text": "a"}, as_agent("m:1:0"), ANY)
    assert tuple(reached) == FAILPOINTS


async def test_a_boot_with_nothing_configured_is_an_empty_toolbox(config: ToolboxConfig, start: Start) -> None:
    toolbox = await start(config)
    assert (toolbox.tools().tools, toolbox.servers()) == ((), [])
    assert json.loads(config.home.known_servers_file.read_text()) == {"servers": [], "tools": {}}
