"""A prepared agent process that died before it was needed."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
import uvloop

from annabelle.core.contract import AgentProfile, ThinkerBoot
from annabelle.hub.agents.process import ThinkerFailed, ThinkerProcess

BOOT = ThinkerBoot(agent=AgentProfile(agent_id="tess"), hub_url="http://127.0.0.1:1", secret="s" * 32, port=0)


@pytest.mark.req("AGT-06")
@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_adopting_a_dead_spare_fails_as_a_dead_agent_does(loop_factory: object, tmp_path: Path) -> None:
    async def adopt_a_dead_one() -> None:
        spare = await ThinkerProcess.spawn({"PATH": os.environ["PATH"]}, tmp_path / "spare.log")
        os.kill(spare.pid, signal.SIGKILL)
        await asyncio.wait_for(spare.exited(), 10)
        with pytest.raises(ThinkerFailed, match="ended with code -9"):
            await spare.adopt(BOOT, 5)

    with asyncio.Runner(loop_factory=loop_factory) as runner:  # type: ignore[arg-type]
        runner.run(adopt_a_dead_one())
