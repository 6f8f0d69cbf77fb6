"""Programs forked from one process that has imported everything, so that a test pays no seconds of imports.

What is forked runs the program's own `main` in its own process, with exactly the environment it is given. The two fork
servers of a hub are forked ahead, while it has one thread, and do in every other respect what a hub's own do.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import io
import os
import pkgutil
import random
import select
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NoReturn, cast

from annabelle.core.home import HOME_VARIABLE
from annabelle.toolbox.process import control_socket, forkserver, kernel
from annabelle.toolbox.process.child import flush_and_exit
from annabelle.toolbox.process.forkserver_process import ForkServerProcess, can_use_forkserver, start_forkserver
from support import once, timing
from support.reaper import environment_mark

HUB = "annabelle.hub.__main__"
COMMAND = "annabelle.cli.app"
FORK_SERVER = "annabelle.toolbox.process.forkserver"
_MODULES = (HUB, COMMAND, "annabelle.cli.compare", "httpcore2", "uvicorn.lifespan.off")
_PACKAGES = tuple(
    f"annabelle.{name}" for name in ("cli", "core", "store", "hub", "thinker", "servers.memory", "servers.filer")
)
"""Imported with all their modules, whenever those would be needed."""
_FORK_SERVERS = 2
"""One for the tool servers, one for the thinkers."""
_SAME_FORKED = {"PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
"""Also read when an interpreter starts, but what a program does is the same. Many containers set the last two."""


class WarmProcess:
    """A forked program, used like `subprocess.Popen`."""

    def __init__(self, template: Template, pid: int, handle: int) -> None:
        self._template, self.pid, self._handle = template, pid, handle
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._handle], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0)
            self.returncode = self._template.exit_code(self.pid)
            os.close(self._handle)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        assert self.stdout is not None
        assert self.stderr is not None
        if self.stdout.closed:
            return "", ""  # it was asked before
        with self.stdout, self.stderr, ThreadPoolExecutor(2) as readers:
            out, errors = readers.submit(self.stdout.read), readers.submit(self.stderr.read)
            try:
                self.wait(timeout)
            except BaseException:
                self.kill()  # else the readers would wait for ever
                raise
            return out.result(), errors.result()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether a forked process behaves like a started one: some variables are read when an interpreter starts."""
    read_at_start = {name for name in environment if name.startswith(("LD_", "PYTHON"))} - _SAME_FORKED
    return can_use_forkserver() and not read_at_start


class Template:
    """The process with the imports, from which others are forked. It is started when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._codes: dict[int, int] = {}
        self._running: dict[int, str] = {}
        self._homes: set[str] = set()
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def works_in(self, pid: int, home: Path) -> bool:
        """Whether this is a process forked for that home. Its environment, as others see it, is the template's."""
        return self._running.get(pid) == str(home)

    def has_worked_in(self, home: Path) -> bool:
        return str(home) in self._homes

    def stop(self) -> None:
        """End the process, and everything that still runs with it."""
        if self._process is not None and self._control is not None:
            self._control.close()
            self._process.wait()

    def spawn(
        self, program: str, environment: Mapping[str, str], arguments: Sequence[str] = (), stdin: str = ""
    ) -> WarmProcess:
        """A program whose output is read through pipes."""
        errors, child_errors = os.pipe()
        with os.fdopen(child_errors, "wb"):
            process, into, out = self.fork_with_pipes(program, environment, arguments, child_errors)
        process.stdout, process.stderr = io.TextIOWrapper(out), os.fdopen(errors)
        with contextlib.suppress(BrokenPipeError), into:
            into.write(stdin.encode())
        return process

    def fork_with_pipes(
        self, program: str, environment: Mapping[str, str], arguments: Sequence[str] = (), errors: int = 2
    ) -> tuple[WarmProcess, IO[bytes], IO[bytes]]:
        """A program, its input and its output."""
        (child_in, into), (out, child_out) = os.pipe(), os.pipe()
        with os.fdopen(child_in, "rb"), os.fdopen(child_out, "wb"):
            process = self.fork(program, environment, [child_in, child_out, errors], arguments)
        return process, os.fdopen(into, "wb"), os.fdopen(out, "rb")

    def spawn_into(
        self, program: str, environment: Mapping[str, str], log: IO[bytes], arguments: Sequence[str] = ()
    ) -> WarmProcess:
        """A program whose output goes into a file."""
        with open(os.devnull) as null:
            return self.fork(program, environment, [null.fileno(), log.fileno(), log.fileno()], arguments)

    def fork(
        self, program: str, environment: Mapping[str, str], streams: Sequence[int], arguments: Sequence[str] = ()
    ) -> WarmProcess:
        """A program with these standard streams: the module's `main` is run."""
        with self._lock:
            return self._fork(program, environment, streams, arguments)

    def start_forkserver(self, preload: Sequence[str], python_path: Sequence[str], log: Path) -> ForkServerProcess:
        """A fork server for a toolbox in this process."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = self.fork(FORK_SERVER, {}, [theirs.fileno()])
        forked = ForkServerProcess(cast("subprocess.Popen[bytes]", process), ours)
        return _prepare_fork_server(forked, preload, python_path, log)

    def exit_code(self, pid: int) -> int:
        with self._lock:
            while pid not in self._codes:
                self._receive()
            self._running.pop(pid)
            return self._codes.pop(pid)

    def _fork(
        self, program: str, environment: Mapping[str, str], streams: Sequence[int], arguments: Sequence[str]
    ) -> WarmProcess:
        control = self._control = self._control or self._start()
        request: control_socket.ControlMessage = {
            "program": program,
            "environment": dict(environment),
            "arguments": [*arguments],
            "folder": os.getcwd(),
        }
        control_socket.send(control, request, streams)
        message, descriptors = self._receive()
        while "code" in message:
            message, descriptors = self._receive()
        pid = cast("int", message["pid"])
        self._running[pid] = environment.get(HOME_VARIABLE, "")
        self._homes.add(self._running[pid])
        return WarmProcess(self, pid, descriptors[0])

    def start_forked(self) -> None:
        """Start it from this process, which is forked itself and has the imports, and no thread yet."""
        forked = _fork_with_socket(_become_template)
        self._process, self._control = forked.process, forked.control
        self._control.settimeout(timing.seconds(60))

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # numpy's threads would make it unsafe to fork. The last word is how a command recognises a hub.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.warm_process", str(theirs.fileno()), "annabelle.hub"],
                env={
                    "PATH": os.environ["PATH"],
                    "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # where no namespace keeps the network away
                    "OPENBLAS_NUM_THREADS": "1",
                    **environment_mark(),
                },
                cwd=Path(__file__).parent.parent,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        ours.settimeout(timing.seconds(60))
        return ours

    def _receive(self) -> tuple[control_socket.ControlMessage, list[int]]:
        assert self._control is not None
        received = control_socket.receive(self._control)
        assert received is not None, "the process that others are forked from has ended; its error is on standard error"
        if "code" in received[0]:
            self._codes[cast("int", received[0]["pid"])] = cast("int", received[0]["code"])
        return received


TEMPLATE = Template()
atexit.register(TEMPLATE.stop)


def main() -> None:
    """The template's own process."""
    control = socket.socket(fileno=int(sys.argv[1]))
    from annabelle.toolbox.config import PRELOADED  # noqa: PLC0415  this module is imported by every test run

    gc.disable()
    packages = [importlib.import_module(package) for package in _PACKAGES]
    inner = [found.name for one in packages for found in pkgutil.walk_packages(one.__path__, f"{one.__name__}.")]
    for module in (*_MODULES, *PRELOADED, *inner):
        importlib.import_module(module)
    once.do_once()
    once.do_now()
    _serve(control)


def _serve(control: socket.socket) -> None:
    """Fork what is asked for, until nobody asks any more."""
    gc.disable()
    gc.freeze()
    wake_in, wake_out = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake_out, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([control, wake_in], [], [])
        if wake_in in ready:
            os.read(wake_in, 4096)
            _report_ended(control)
        if control in ready:
            received = control_socket.receive(control)
            if received is None:
                return
            message, descriptors = received
            _fork_program(control, message, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)


def _report_ended(control: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError, BrokenPipeError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            control_socket.send(control, {"pid": pid, "code": os.waitstatus_to_exitcode(status)})


def _fork_program(control: socket.socket, message: control_socket.ControlMessage, streams: list[int]) -> None:
    parent = os.getpid()
    pid = os.fork()
    if pid == 0 and message["program"] == FORK_SERVER:
        kernel.reset_signals()
        _become_fork_server(socket.socket(fileno=streams[0]), parent)
    if pid == 0:
        _become_program(message, streams, parent)
    handle = os.pidfd_open(pid)
    control_socket.send(control, {"pid": pid}, [handle])
    os.close(handle)


def _become_program(message: control_socket.ControlMessage, streams: list[int], parent: int) -> NoReturn:
    def prepare() -> None:
        kernel.die_with_parent(parent, signal.SIGKILL)
        for standard, descriptor in enumerate(streams):
            os.dup2(descriptor, standard)
        if os.isatty(0):
            own_terminal()
        os.environ.clear()
        os.environ.update(cast("dict[str, str]", message["environment"]))
        os.chdir(cast("str", message["folder"]))
        time.tzset()

    _run_program(cast("str", message["program"]), cast("list[str]", message["arguments"]), prepare)


def _run_program(program: str, arguments: Sequence[str], prepare: Callable[[], None] | None) -> NoReturn:
    """Run it in this process, which was forked for it."""
    code = 1
    try:
        if prepare is not None:
            prepare()
        kernel.reset_signals()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as an interpreter starts
        kernel.close_all_but_standard()
        # In a hub that a command started, the command's streams are dropped, and must not close the hub's.
        sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        if program == HUB:
            _use_forked([_fork_with_socket(_become_fork_server) for _ in range(_FORK_SERVERS)])
        elif program == COMMAND:
            hub_process = importlib.import_module("annabelle.cli.hub_process")
            hub_process.subprocess = SimpleNamespace(Popen=_popen_hub, DEVNULL=subprocess.DEVNULL)
        random.seed()
        gc.enable()
        sys.argv = [program, *arguments]
        code = importlib.import_module(program).main() or 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        flush_and_exit(code)


def _popen_hub(
    arguments: Sequence[str], *, preexec_fn: Callable[[], None] | None, **options: Any
) -> subprocess.Popen[Any]:
    """The hub that a forked command starts: forked from it in the place of an `exec`."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    become_hub = partial(_run_program, HUB, (), preexec_fn)
    return subprocess.Popen(arguments, preexec_fn=become_hub, restore_signals=False, **options)


def own_terminal() -> None:
    """Makes standard input the terminal that signals of this process come from."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _use_forked(waiting: list[ForkServerProcess]) -> None:
    """Have the hub take the fork servers that wait; one that it starts after those died is its own."""

    def take(preload: Sequence[str], python_path: Sequence[str], log: Path) -> ForkServerProcess:
        if not waiting:
            return start_forkserver(preload, python_path, log)
        return _prepare_fork_server(waiting.pop(), preload, python_path, log)

    for module in (HUB, "annabelle.toolbox.process.fork_launcher"):
        importlib.import_module(module).start_forkserver = take


def _prepare_fork_server(
    forked: ForkServerProcess, preload: Sequence[str], python_path: Sequence[str], log: Path
) -> ForkServerProcess:
    log.parent.mkdir(parents=True, exist_ok=True)
    control_socket.send(forked.control, {"log": str(log), "path": [*python_path]})
    forked.control.setblocking(False)
    control_socket.send(forked.control, {"op": "preload", "modules": list(preload)})
    return forked


class _ForkedProcess:
    """The part of `subprocess.Popen` that the hub uses of a fork server."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def wait(self, timeout: float = 60) -> int:
        deadline = time.monotonic() + timeout
        while self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a forked fork server", timeout)
            else:
                time.sleep(0.01)
        return self._code

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _fork_with_socket(become: Callable[[socket.socket, int], NoReturn]) -> ForkServerProcess:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        ours.close()
        become(theirs, parent)
    theirs.close()
    return ForkServerProcess(cast("subprocess.Popen[bytes]", _ForkedProcess(pid)), ours)


def _become_template(control: socket.socket, parent: int) -> NoReturn:
    kernel.die_with_parent(parent, signal.SIGKILL)
    _serve(control)
    os._exit(0)


def _become_fork_server(theirs: socket.socket, parent: int) -> NoReturn:
    try:
        kernel.die_with_parent(parent, signal.SIGTERM)
        os.setsid()
        os.chdir("/")
        os.environ.clear()
        received = control_socket.receive(theirs)
        if received is None:
            os._exit(0)  # the hub ended without it
        message, _ = received
        with open(cast("str", message["log"]), "ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        sys.path[:0] = cast("list[str]", message["path"])
        sys.argv = ["annabelle.toolbox.process.forkserver", str(theirs.detach()), str(parent)]
        forkserver.main()
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
