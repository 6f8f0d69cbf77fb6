"""The hub runs on uvloop; what the other tests show on asyncio's own loop must hold there too."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from annabelle.core.errors import OutcomeUnknown
from annabelle.core.tools import CallContext
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.facade import Toolbox, ToolServers
from support.toolbox import MemoryJournal, eventually

WithServers = Callable[..., ToolboxConfig]


@pytest.mark.req("HUB-03", "HUB-05")
def test_servers_live_die_and_come_back_on_uvloop(
    with_servers: WithServers, journal: MemoryJournal, person: CallContext, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    marker.touch()
    config = with_servers("echo", "witness", "awkward")

    async def story() -> None:
        toolbox = Toolbox(ToolServers(config, journal))
        try:
            await toolbox.start()
            said = await asyncio.gather(*(toolbox.call("echo_say", {"text": str(n)}, person) for n in range(50)))
            assert [result.structured for result in said] == [{"said": str(n)} for n in range(50)]
            assert (await toolbox.call("awkward_huge", {"count": 20_000_000}, person)).is_error
            with pytest.raises(OutcomeUnknown):
                await toolbox.call("witness_act", {"word": "a", "die": "after", "marker": str(marker)}, person)
            pid = toolbox.servers()[1].pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await eventually(lambda: all(server.available for server in toolbox.servers()))
            assert (await toolbox.call("echo_say", {"text": "back"}, person)).structured == {"said": "back"}
        finally:
            await toolbox.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())
