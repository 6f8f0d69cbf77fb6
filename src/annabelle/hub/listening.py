"""The hub's socket: taken before anything heavy is loaded, so that a taken port is told at once."""

from __future__ import annotations

import errno
import socket

from annabelle.core.errors import OperatorMistake

LOOPBACK = "127.0.0.1"
_BACKLOG = 512


def bind(port: int) -> socket.socket:
    """A listening socket of our own on loopback; who comes before the hub can answer waits for it.

    Binding alone would not do: two hubs may bind one port, and the loop does not tell the one that may not listen.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((LOOPBACK, port))
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise OperatorMistake(
                f"Port {port} on {LOOPBACK} is taken by another program.",
                hint="Stop that program, or choose another port with ANNABELLE_PORT (0 takes a free one).",
            ) from error
        raise OperatorMistake(
            f"Port {port} on {LOOPBACK} can not be used: {error.strerror}.",
            hint="Choose another port with ANNABELLE_PORT.",
        ) from error
    return sock


def address(sock: socket.socket) -> str:
    return f"http://{LOOPBACK}:{sock.getsockname()[1]}"
