"""Messages between hub and fork server: one JSON object per packet, with descriptors attached."""

from __future__ import annotations

import array
import json
import socket
from collections.abc import Sequence
from typing import cast

ControlMessage = dict[str, object]

_MAX_BYTES = 65536
_MAX_DESCRIPTORS = 8


def send(control: socket.socket, message: ControlMessage, descriptors: Sequence[int] = ()) -> None:
    blob = json.dumps(message).encode()
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    control.sendmsg([blob], ancillary, socket.MSG_NOSIGNAL)


def receive(control: socket.socket) -> tuple[ControlMessage, list[int]] | None:
    """The next message, or None when the other side is gone."""
    try:
        blob, descriptors, _, _ = socket.recv_fds(control, _MAX_BYTES, _MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return None
    return (cast("ControlMessage", json.loads(blob)), list(descriptors)) if blob else None
