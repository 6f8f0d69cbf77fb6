"""The hub's side of the nursery, against a nursery played by the test."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from pathlib import Path

import pytest

from annabelle.toolbox.nursery import talk
from annabelle.toolbox.nursery.parcel import Parcel
from annabelle.toolbox.processes.launch import Launch
from annabelle.toolbox.processes.link import NurseryLink
from annabelle.toolbox.processes.warm import WarmNursery
from support.toolbox import eventually


def _sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


@pytest.mark.incident("I-25")
async def test_a_child_that_is_born_while_its_caller_leaves_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    link = NurseryLink(WarmNursery(_sleeper(), ours))
    child = _sleeper()
    asking = asyncio.create_task(link.fork(Launch("late", Parcel({}), tmp_path / "late.log", module="none")))
    await asyncio.sleep(0)
    received = talk.receive(theirs)
    assert received is not None
    request, descriptors = received
    for descriptor in descriptors:
        os.close(descriptor)

    receive = talk.receive

    def receive_and_leave(control: socket.socket) -> tuple[talk.Message, list[int]] | None:
        asyncio.get_running_loop().call_soon(asking.cancel)  # before the waiter can take what came
        return receive(control)

    monkeypatch.setattr(talk, "receive", receive_and_leave)
    handle = os.pidfd_open(child.pid)
    talk.send(theirs, {"op": "forked", "id": request["id"], "pid": child.pid}, [handle])
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
