"""Agent processes as the hub starts them: forked or from nothing, overheard, and dead before their time."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from annabelle.core.contract import AgentProfile, ThinkerBoot
from annabelle.core.secrets.redactor import Redactor
from annabelle.hub.agents.process import ThinkerFailed, ThinkerProcess
from annabelle.toolbox.process.child_config import ChildConfig
from annabelle.toolbox.process.fork_launcher import ForkLauncher, choose_launcher
from annabelle.toolbox.process.launcher import LaunchRequest, ProcessLauncher
from support.timing import seconds

PROGRAM = "annabelle.thinker.boot"
BOOT = ThinkerBoot(agent=AgentProfile(agent_id="tess"), hub_url="http://127.0.0.1:1", secret="s" * 32, port=0)
KEY = "sk-live-0123456789abcdef"


@asynccontextmanager
async def launching(fork: bool, folder: Path) -> AsyncGenerator[ProcessLauncher]:
    launcher = choose_launcher(fork, (PROGRAM,), (str(folder),), folder / "nursery.log")
    try:
        yield launcher
    finally:
        await launcher.stop()


def order(folder: Path, module: str = PROGRAM) -> LaunchRequest:
    return LaunchRequest("spare", ChildConfig({}), folder / "spare.log", module=module, kind="thinker")


@pytest.mark.req("AGT-06")
@pytest.mark.parametrize("fork", [True, False])
@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_adopting_a_dead_spare_fails_as_a_dead_agent_does(loop_factory: object, fork: bool, tmp_path: Path) -> None:
    async def adopt_a_dead_one() -> None:
        async with launching(fork, tmp_path) as launcher:
            spare = await ThinkerProcess.spawn(launcher, order(tmp_path), Redactor())
            os.kill(spare.pid, signal.SIGKILL)
            await asyncio.wait_for(spare.exited(), seconds(30))
            with pytest.raises(ThinkerFailed, match="ended with code -9") as failed:
                await spare.assign_agent(BOOT, 30)
            assert failed.value.killed
            await spare.kill()

    with asyncio.Runner(loop_factory=loop_factory) as runner:  # type: ignore[arg-type]
        runner.run(adopt_a_dead_one())


@pytest.mark.req("AGT-06")
async def test_agents_die_with_what_they_were_forked_from_and_the_next_comes_from_a_new_one(tmp_path: Path) -> None:
    async with launching(True, tmp_path) as launcher:
        assert isinstance(launcher, ForkLauncher)
        first = await ThinkerProcess.spawn(launcher, order(tmp_path), Redactor())
        nursery = launcher.pid
        assert nursery is not None
        os.kill(nursery, signal.SIGKILL)
        assert await asyncio.wait_for(first.exited(), seconds(30)) == -signal.SIGKILL
        await first.kill()
        second = await ThinkerProcess.spawn(launcher, order(tmp_path), Redactor())
        assert second.alive
        assert launcher.pid != nursery
        await second.kill()
        assert not second.alive


@pytest.mark.req("POL-06")
@pytest.mark.parametrize("fork", [True, False])
async def test_what_an_agent_prints_reaches_its_log_without_the_secrets_of_the_home(fork: bool, tmp_path: Path) -> None:
    (tmp_path / "babbler.py").write_text(f"def main():\n    raise SystemError('it said {KEY} aloud')\n")
    async with launching(fork, tmp_path) as launcher:
        process = await ThinkerProcess.spawn(launcher, order(tmp_path, "babbler"), Redactor([KEY]))
        assert await asyncio.wait_for(process.exited(), seconds(30)) == 1
        await process.kill()
    said = (tmp_path / "spare.log").read_text()
    assert "SystemError: it said" in said
    assert KEY not in said
