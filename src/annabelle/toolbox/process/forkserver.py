"""The fork server: imports what all servers need, once, and forks each server. Started with an empty environment, so it
never sees a secret.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
import traceback
from typing import cast

from annabelle.toolbox.process import control_socket, kernel
from annabelle.toolbox.process.child import become_reaper, become_server


class ForkServer:
    """Serves the hub's requests one at a time; each takes milliseconds."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._known: set[int] = set()
        self._wake_in, self._wake_out = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> None:
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake_out, warn_on_full_buffer=False)
        waiting = select.poll()
        waiting.register(self._control, select.POLLIN)
        waiting.register(self._wake_in, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in waiting.poll()}
            if self._wake_in in ready:
                os.read(self._wake_in, 4096)
                self._reap_children()
            if self._control.fileno() in ready and not self._serve():
                return

    def _serve(self) -> bool:
        received = control_socket.receive(self._control)
        if received is None:
            return False
        message, descriptors = received
        try:
            if message["op"] == "preload":
                self._preload(cast("list[str]", message["modules"]))
            else:
                self._fork(message, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _preload(self, modules: list[str]) -> None:
        started, failed = time.process_time(), list[str]()
        for module in modules:
            try:
                importlib.import_module(module)
            except Exception:  # noqa: BLE001  a server that needs it reports it; the others must still run
                traceback.print_exc()
                failed.append(module)
        gc.freeze()  # keep pages shared: no child's collector writes to them
        control_socket.send(
            self._control, {"op": "ready", "cpu_seconds": time.process_time() - started, "failed": failed}
        )

    def _fork(self, message: control_socket.ControlMessage, descriptors: list[int]) -> None:
        stdin, stdout, log, config = descriptors
        own, name = os.getpid(), cast("str", message["name"])
        pid = os.fork()
        if pid == 0:
            if message["op"] == "server":
                become_server(cast("str", message["module"]), name, (stdin, stdout, log, config), own)
            become_reaper(name, (stdin, stdout, log, config), own)
        self._known.add(pid)
        handle = os.pidfd_open(pid)  # before it can be reaped and its pid reused
        try:
            control_socket.send(self._control, {"op": "forked", "id": message["id"], "pid": pid}, [handle])
        finally:
            os.close(handle)

    def _reap_children(self) -> None:
        """Reap ended children, tell the hub, and kill what an ended server left behind: it is our child now."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                break
            if pid in self._known:
                self._known.discard(pid)
                control_socket.send(
                    self._control, {"op": "exited", "pid": pid, "code": os.waitstatus_to_exitcode(status)}
                )
        for pid in kernel.find_children():
            if pid not in self._known:
                for below in kernel.find_descendants(pid):
                    kernel.kill(below)
                kernel.kill(pid)


def _on_terminate(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    kernel.kill_descendants()
    os._exit(0)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the hub's to handle
    signal.signal(signal.SIGTERM, _on_terminate)
    kernel.adopt_orphans()
    kernel.die_with_parent(int(sys.argv[2]), signal.SIGTERM)
    kernel.set_process_name("nursery")
    gc.disable()  # a collection would leave holes in pages that children then write to
    try:
        ForkServer(control).run()
    except BrokenPipeError:
        pass  # the hub is gone
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kernel.kill_descendants()
    os._exit(0)


if __name__ == "__main__":
    main()
