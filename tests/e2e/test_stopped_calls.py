"""A call that nobody waits for any more ends at its server, with everything it had started."""

from __future__ import annotations

import contextlib
import signal
import subprocess

import psutil
import pytest

from cli.terminal import ANNABELLE
from e2e.days import MakeHub, plan
from hub.hubs import HubProcess, wait_for
from support.few_servers import only


@pytest.fixture
def hub(make_hub: MakeHub) -> HubProcess:
    return make_hub(**only("codexec", "memory")).start()


def sleepers(seconds: str) -> list[psutil.Process]:
    """Processes that sleep for just so long; each test has a number of its own."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cmdline()[:2] == ["sleep", seconds]:
                found.append(process)
    return found


@pytest.mark.req("SRV-ALL", "SRV-EXE")
def test_a_call_at_the_terminal_ends_with_ctrl_c(hub: HubProcess) -> None:
    arguments = ["codexec_execute_code", "language=bash", "code=sleep 71.25", "timeout_ms=100000"]
    calling = subprocess.Popen(
        [ANNABELLE, "tools", "call", *arguments], env=hub.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for(lambda: sleepers("71.25"), "the code to run", 30)
    calling.send_signal(signal.SIGINT)
    assert calling.wait(30) == 130
    calling.communicate()
    wait_for(lambda: not sleepers("71.25"), "the end of the code", 15)


@pytest.mark.req("LOOP-09", "SRV-EXE")
def test_a_stopped_turn_takes_its_calls_along(hub: HubProcess) -> None:
    code = {"language": "bash", "code": "sleep 72.25", "timeout_ms": 100_000}
    begun = hub.http.post("/message", json={"text": plan("never said", ("codexec_execute_code", code))}).json()
    wait_for(lambda: sleepers("72.25"), "the code to run", 60)
    ended = hub.http.post(f"/messages/{begun['messageId']}/cancel", params={"wait": 30}).json()
    assert ended["reply"]["metadata"]["error"]["code"] == "cancelled"
    wait_for(lambda: not sleepers("72.25"), "the end of the code", 15)
