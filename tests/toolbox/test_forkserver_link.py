"""The hub's side of the fork server, against one played by the test."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from pathlib import Path

import pytest

from annabelle.toolbox.process import control_socket
from annabelle.toolbox.process.child_config import ChildConfig
from annabelle.toolbox.process.fork_launcher import ForkServerLink
from annabelle.toolbox.process.forkserver_process import ForkServerProcess
from annabelle.toolbox.process.launcher import LaunchRequest
from support.toolbox import eventually


def _sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


@pytest.mark.incident("I-25")
async def test_a_child_that_is_born_while_its_caller_leaves_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    link = ForkServerLink(ForkServerProcess(_sleeper(), ours))
    child = _sleeper()
    asking = asyncio.create_task(
        link.fork(LaunchRequest("late", ChildConfig({}), tmp_path / "late.log", module="none"))
    )
    await asyncio.sleep(0)
    received = control_socket.receive(theirs)
    assert received is not None
    request, descriptors = received
    for descriptor in descriptors:
        os.close(descriptor)

    receive = control_socket.receive

    def receive_and_leave(control: socket.socket) -> tuple[control_socket.ControlMessage, list[int]] | None:
        asyncio.get_running_loop().call_soon(asking.cancel)  # before the waiter can take what came
        return receive(control)

    monkeypatch.setattr(control_socket, "receive", receive_and_leave)
    handle = os.pidfd_open(child.pid)
    control_socket.send(theirs, {"op": "forked", "id": request["id"], "pid": child.pid}, [handle])
    os.close(handle)
    with pytest.raises(asyncio.CancelledError):
        await asking
    try:
        await eventually(lambda: child.poll() is not None, 5)
    finally:
        child.kill()
        child.wait()
        theirs.close()
        await link.stop()
