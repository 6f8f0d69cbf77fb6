"""Forks thinker processes from one that has imported everything, so that a test waits for a fork, not for imports.

Each child runs the real `main()` with its own standard input and output; only the imports are shared.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

from annabelle.thinker import boot


def main() -> None:
    requests = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are not waited for: who started them reads their output
    requests.sendall(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, 1 << 20, 3)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            _be_a_thinker(requests, descriptors, json.loads(message))
        for descriptor in descriptors:
            os.close(descriptor)
        requests.sendall(str(pid).encode())


def _be_a_thinker(requests: socket.socket, descriptors: list[int], environment: dict[str, str]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    requests.close()
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    code = 1
    try:
        boot.main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
