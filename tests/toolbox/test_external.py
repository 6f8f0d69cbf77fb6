"""Servers the user adds: started, changed and removed while the hub runs."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import watchfiles

from annabelle.core.errors import OutcomeUnknown, ServerDown, UnknownTool
from annabelle.core.secrets.redactor import MASK
from annabelle.core.tools import CallContext
from annabelle.toolbox.config import ToolboxConfig, ToolboxLimits
from annabelle.toolbox.external.servers import FileWatcher
from annabelle.toolbox.facade import Toolbox, ToolServers
from annabelle.toolbox.mcp import sdk
from annabelle.toolbox.status import ToolboxNotice
from support.timing import seconds
from support.toolbox import QUICK, TESTS, MemoryJournal, eventually, write_external

Start = Callable[[ToolboxConfig], Awaitable[Toolbox]]
WithServers = Callable[..., ToolboxConfig]


def python(module: str, **more: object) -> dict[str, object]:
    return {"command": sys.executable, "args": ["-m", module], "env": {"PYTHONPATH": str(TESTS)}, **more}


WHO = "support.servers.who"


def names(toolbox: Toolbox) -> list[str]:
    return [tool.name for tool in toolbox.tools().tools]


def states(toolbox: Toolbox) -> dict[str, str]:
    return {status.name: status.state for status in toolbox.servers()}


@pytest.fixture
def heard() -> list[ToolboxNotice]:
    return []


@pytest.mark.req("EXT-03", "RTR-06")
async def test_servers_come_change_and_go_with_the_file(
    with_servers: WithServers, start: Start, person: CallContext, heard: list[ToolboxNotice]
) -> None:
    config = with_servers("witness")
    toolbox = await start(config)
    toolbox.on_notice(heard.append)
    builtin = toolbox.servers()[0].pid
    write_external(config, {"one": python(WHO), "two": python(WHO)})
    await eventually(lambda: {"one_who", "two_who"} <= set(names(toolbox)))
    untouched = {status.name: status.pid for status in toolbox.servers()}["two"]
    write_external(config, {"one": python(WHO, metadata={"label": "First", "toolGroup": "Mine"}), "two": python(WHO)})
    await eventually(lambda: any(t.description.startswith("[First | Mine]") for t in toolbox.tools().tools))
    write_external(config, {"two": python(WHO)})
    await eventually(lambda: "one_who" not in names(toolbox))
    with pytest.raises(UnknownTool):
        await toolbox.call("one_who", {}, person)
    assert not (await toolbox.call("two_who", {}, person)).is_error
    pids = {status.name: status.pid for status in toolbox.servers()}
    assert pids == {"two": untouched, "witness": builtin}, "what did not change was not touched"
    await eventually(lambda: len(heard) == 3)
    assert [notice.text.split(". ", 1)[1] for notice in heard] == ["Added: one, two.", "Changed: one.", "Removed: one."]
    config.external_file.unlink()
    await eventually(lambda: list(states(toolbox)) == ["witness"])


@pytest.mark.req("EXT-03")
@pytest.mark.incident("I-18")
async def test_a_file_that_can_not_be_read_keeps_the_last_good_set(
    with_servers: WithServers, start: Start, person: CallContext, heard: list[ToolboxNotice]
) -> None:
    config = with_servers()
    write_external(config, {"one": python(WHO)})
    toolbox = await start(config)
    toolbox.on_notice(heard.append)
    pid = toolbox.servers()[0].pid
    for bad in (b'{"mcpServers": {', b"\xff\xfe", b"[]"):
        heard.clear()
        config.external_file.write_bytes(bad)
        await eventually(lambda: len(heard) == 1)
        assert heard[0].kind == "external_config"
        assert "stay as they are" in heard[0].text
    assert toolbox.servers()[0].pid == pid
    assert not (await toolbox.call("one_who", {}, person)).is_error


@pytest.mark.req("EXT-03")
async def test_a_change_is_read_after_half_a_second_of_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    async def awatch(*folders: Path, step: int, debounce: int, **more: object) -> AsyncIterator[set[object]]:
        asked.append((step, debounce))
        await asyncio.Event().wait()
        yield set()

    async def changed() -> None: ...

    monkeypatch.setattr(watchfiles, "awatch", awatch)
    watcher = FileWatcher(tmp_path / "external-mcps.json", ToolboxLimits().reload_quiet_ms, changed)
    watcher.start()
    await eventually(lambda: asked)
    await watcher.stop()
    assert asked == [(500, 2000)], "milliseconds without a change, and the longest wait while changes go on"


@pytest.mark.req("EXT-03", "EXT-02")
async def test_a_bad_entry_is_left_out_alone(
    with_servers: WithServers, start: Start, heard: list[ToolboxNotice]
) -> None:
    config = with_servers("echo")
    write_external(
        config,
        {
            "good": python(WHO),
            "echo": python(WHO),
            "bad": {"args": []},
            "unset": python(WHO, env={"A": "${NOT_SET_ANYWHERE}"}),
            "missing": {"command": "no-such-command-here"},
        },
    )
    toolbox = await start(replace(config, limits=replace(QUICK, max_restarts=1)))
    toolbox.on_notice(heard.append)
    await eventually(lambda: states(toolbox)["missing"] == "down")
    assert states(toolbox) == {"echo": "ready", "good": "ready", "unset": "disabled", "missing": "down"}
    assert not [name for name in names(toolbox) if name == "echo_who"], "a built-in name can not be taken over"
    reasons = {status.name: status.last_error for status in toolbox.servers()}
    assert reasons["missing"] == "the command no-such-command-here was not found"
    assert reasons["unset"] == "unset is disabled: the variable NOT_SET_ANYWHERE is not set."
    assert sorted(notice.kind for notice in heard) == [
        "external_config",
        "external_config",
        "flapping",
        "server_disabled",
    ]


@pytest.mark.incident("I-11")
@pytest.mark.parametrize("mode", ["forkserver", "plain"])
async def test_an_external_server_gets_its_own_environment_and_no_more(
    with_servers: WithServers, start: Start, person: CallContext, mode: str
) -> None:
    config = with_servers(use_forkserver=mode == "forkserver")
    environment = {**config.environment, "USER": "me", "LANG": "C.UTF-8", "MY_TOKEN": "token-for-one-9"}
    entry = python(WHO, env={"PYTHONPATH": str(TESTS), "TOKEN": "${MY_TOKEN}"})
    write_external(config, {"one": entry})
    toolbox = await start(replace(config, environment=environment))
    who = (await toolbox.call("one_who", {}, person)).structured
    assert who is not None
    assert who["environment"] == {
        "PATH": config.environment["PATH"],
        "HOME": config.environment["HOME"],
        "USER": "me",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(TESTS),
        "TOKEN": MASK,
    }, "it was given the value, and what it says of it is masked"
    assert b"TOKEN=token-for-one-9" in _given(who["pid"])
    assert who["folder"] == str(config.home.root)


def _given(pid: object) -> list[bytes]:
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


@pytest.mark.req("EXT-04")
async def test_a_start_reports_what_came_and_went_since_the_last(
    with_servers: WithServers, journal: MemoryJournal, heard: list[ToolboxNotice]
) -> None:
    config = with_servers("echo")
    write_external(config, {"gone": python(WHO)})
    first = Toolbox(ToolServers(config, journal))
    first.on_notice(heard.append)
    await first.start()
    await first.stop()
    assert heard == [], "a first start has nothing to compare with"
    known = json.loads(config.home.known_servers_file.read_text())
    assert known == {"servers": ["echo", "gone"], "tools": {"echo": 5, "gone": 2}}
    write_external(config, {"new": python(WHO)})
    second = Toolbox(ToolServers(config, journal))
    second.on_notice(heard.append)
    await second.start()
    await second.stop()
    assert [(notice.kind, notice.text) for notice in heard] == [
        ("startup_diff", "New servers: new. Servers that are gone: gone.")
    ]


@pytest.fixture
async def http_server() -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """Its address, and how to kill it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "support.servers.over_http",
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    assert process.stdout is not None
    port = int(await asyncio.wait_for(process.stdout.readline(), seconds(60)))
    yield f"http://127.0.0.1:{port}/mcp", process.kill
    if process.returncode is None:
        process.kill()
    await process.wait()


@pytest.mark.req("EXT-02")
async def test_a_server_is_reached_by_address_with_its_headers(
    with_servers: WithServers, start: Start, person: CallContext, http_server: tuple[str, Callable[[], None]]
) -> None:
    config, (address, kill) = with_servers(), http_server
    environment = {**config.environment, "FAR_KEY": "the-key-12345"}
    far = {"url": address, "headers": {"Authorization": "Bearer ${FAR_KEY}"}}
    write_external(config, {"far": far, "locked": {"url": address}})
    toolbox = await start(replace(config, environment=environment, limits=replace(QUICK, max_restarts=1)))
    assert (await toolbox.call("far_say", {"text": "hello"}, person)).structured == {"said": "hello"}
    failed = await toolbox.call("far_fail", {}, person)
    assert failed.is_error
    [status] = [status for status in toolbox.servers() if status.name == "far"]
    assert (status.kind, status.state, status.pid) == ("http", "ready", None)
    await eventually(lambda: states(toolbox)["locked"] == "down")
    kill()
    with pytest.raises((ServerDown, OutcomeUnknown)):
        await toolbox.call("far_fail", {}, person)
    await eventually(lambda: states(toolbox)["far"] == "down")
    write_external(config, {})
    await eventually(lambda: toolbox.servers() == [])


@pytest.mark.req("POL-06")
async def test_a_secret_that_stands_in_an_entry_is_not_repeated(with_servers: WithServers, start: Start) -> None:
    config = with_servers(limits=replace(QUICK, max_restarts=1))
    say = "import sys; sys.exit('open sesame, said the server')"
    cave = {"command": sys.executable, "args": ["-c", say], "env": {"CAVE_PASSWORD": "open sesame"}}
    write_external(config, {"cave": cave})
    [status] = (await start(config)).servers()
    assert status.last_error == "its process ended with code 1; it said: «redacted», said the server"


@pytest.mark.req("POL-06")
async def test_a_key_in_an_address_is_not_repeated_when_the_server_is_away(
    with_servers: WithServers, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(url: str, headers: dict[str, str], on_tools_changed: Callable[[], None]) -> None:
        raise OSError(f"Client error '404 Not Found' for url '{url}'")

    monkeypatch.setattr(sdk, "open_session", refuse)
    config = with_servers(limits=replace(QUICK, max_restarts=1))
    far = {"url": "http://127.0.0.1:9/mcp?who=open-sesame", "headers": {"X-Cave": "open-sesame"}}
    write_external(config, {"far": far})
    [status] = (await start(config)).servers()
    assert status.last_error == "OSError: Client error '404 Not Found' for url 'http://127.0.0.1:9/mcp?who=«redacted»'"
