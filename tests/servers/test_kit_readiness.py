"""A server that lacks something runs, and the toolbox knows what it lacks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from annabelle.core.home import Home
from annabelle.core.tools import Audience, ToolAnnotations, ToolSpec
from annabelle.servers.kit.server import ReadinessTool
from annabelle.toolbox.config import ManifestFolder, ToolboxConfig
from annabelle.toolbox.facade import Toolbox, ToolServers
from annabelle.toolbox.supervisor.server import has_readiness_tool
from servers.needy_servers.needy.__main__ import SENTENCE
from support.timing import seconds
from support.toolbox import QUICK, TESTS, MemoryJournal, eventually

pytestmark = pytest.mark.req("SRV-ALL")

Start = Callable[[dict[str, str]], Awaitable[Toolbox]]


@pytest.fixture
async def start(home: Home) -> AsyncIterator[Start]:
    """A toolbox with one server that asks every fifth of a second what it lacks."""
    async with AsyncExitStack() as stack:

        async def started(environment: dict[str, str]) -> Toolbox:
            config = ToolboxConfig(
                home=home,
                environment={"PATH": os.environ["PATH"], "HOME": str(home.root), **environment},
                external_file=home.config / "external-mcps.json",
                manifest_folders=(ManifestFolder(TESTS / "servers/needy_servers", "servers.needy_servers"),),
                limits=replace(QUICK, ping_every_seconds=0.2),
                python_path=(str(TESTS),),
            )
            toolbox = Toolbox(ToolServers(config, MemoryJournal()))
            stack.push_async_callback(toolbox.stop)
            await asyncio.wait_for(toolbox.start(), seconds(60))
            return toolbox

        yield started


def missing(toolbox: Toolbox) -> str | None:
    [status] = toolbox.servers()
    assert status.state == "ready"
    return status.missing


async def test_what_a_server_lacks_is_in_its_status_until_it_is_there(start: Start, tmp_path: Path) -> None:
    needed = tmp_path / "needed"
    toolbox = await start({"NEEDED_FILE": str(needed)})
    assert missing(toolbox) == SENTENCE
    needed.touch()
    await eventually(lambda: missing(toolbox) is None)
    needed.unlink()
    await eventually(lambda: missing(toolbox) == SENTENCE)


async def test_what_only_the_hub_may_call_is_not_counted_among_the_tools(start: Start) -> None:
    [status] = (await start({})).servers()
    assert status.tools == 1


async def test_a_server_that_fails_to_say_what_it_lacks_works_on(start: Start) -> None:
    assert missing(await start({})) is None


async def test_nothing_missing_is_ready() -> None:
    async def nothing() -> str | None:
        return None

    answer = await ReadinessTool(nothing).readiness()
    assert (answer.ready, answer.missing) == (True, None)


@pytest.mark.parametrize(("audience", "asked"), [("hub", True), ("everyone", False), ("people", False)])
def test_a_tool_that_only_has_the_name_is_never_asked_by_the_hub(audience: Audience, asked: bool) -> None:
    """An external server may have a tool called so, and what that does nobody here knows."""
    spec = ToolSpec(
        name="other_readiness",
        server="other",
        original_name="readiness",
        description="",
        input_schema={"type": "object"},
        annotations=ToolAnnotations(),
        audience=audience,
    )
    assert has_readiness_tool([spec]) is asked
