"""Isolation on Linux: namespaces by bubblewrap, limits by the kernel, and a user who owns nothing.

There are two forms. An ordinary user gets a user namespace, in which the code is `nobody` and has no right at all. Root
has bubblewrap set up the namespaces and then gives up its user for good, so that no process inside is root by any
name: mapped to root, it could write to /proc/sys, and the limit on processes would not bind it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from annabelle.servers.codexec.isolation.handing_over import FIRST_USER, give_to_nobody_else, hand_over
from annabelle.servers.codexec.isolation.layer import CELL_HOME, NOBODY, SCRATCH, Cell, Mount
from annabelle.servers.codexec.isolation.seccomp import call_filter
from annabelle.servers.codexec.isolation.system import system_arguments
from annabelle.servers.codexec.isolation.tree import children

INSTALL = "sudo apt-get install bubblewrap"
_SCRATCH_SHARE = 4
"""The scratch folder lives in memory, so it gets a part of what the run may have: one part in this many."""

_COUNTS_BY_NAMESPACE = (5, 14)
"""The first kernel that counts the processes of a user for each user namespace by itself."""

_NAMESPACES = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")


class Bubblewrap:
    """Runs a cell with `bwrap`."""

    name = "bubblewrap"
    programs_of_host = True

    def __init__(self, *, is_root: bool | None = None, which: Callable[[str], str | None] = shutil.which) -> None:
        self._is_root = _is_real_root() if is_root is None else is_root
        self._which = which
        self._kernel = _kernel()

    def missing(self) -> str | None:
        if not sys.platform.startswith("linux"):
            return "bubblewrap works on Linux only"
        for program in ("bwrap", "prlimit", *(("setpriv",) if self._is_root else ())):
            if self._which(program) is None:
                return f"{program} is not installed"
        return None

    def prepare(self, folder: Path, *, private: bool) -> None:
        """As root, each private folder gets a user of its own: the kernel counts processes by user, and would count
        those of all cells together."""
        if not self._is_root:
            return
        if private:
            give_to_nobody_else(folder)
        else:
            hand_over(folder, NOBODY)

    def place(self, mount: Mount) -> str:
        return mount.target

    def environment(self, cell: Cell) -> dict[str, str]:
        return dict(cell.env)

    def call_filter(self, cell: Cell) -> bytes | None:
        return call_filter(network=cell.network)

    def command(self, cell: Cell, call_filter: int | None = None) -> list[str]:
        scratch = str(max(cell.limits.memory_bytes // _SCRATCH_SHARE, 1_048_576))
        arguments = [self._program("bwrap"), *_NAMESPACES, *([] if cell.network else ["--unshare-net"])]
        arguments += ["--die-with-parent", "--new-session", "--hostname", "cell", *self._user()]
        arguments += [] if call_filter is None else ["--seccomp", str(call_filter)]
        arguments += system_arguments(cell.network)
        arguments += ["--proc", "/proc", "--dev", "/dev"]
        for place in (SCRATCH, "/dev/shm"):  # noqa: S108  inside the cell
            arguments += ["--perms", "1777", "--size", scratch, "--tmpfs", place]
        arguments += ["--perms", "1777", "--dir", CELL_HOME]
        for parent in _parents(cell):  # those bwrap makes by itself are closed to anybody but root
            arguments += ["--perms", "0755", "--dir", parent]
        for mount in cell.mounts:
            arguments += ["--bind" if mount.writable else "--ro-bind", str(mount.source), mount.target]
        arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", cell.folder, "--"]
        user, group = self._runs_as(cell)
        return [*arguments, *self._drop(user, group), *self._limited(cell, user), *cell.argv]

    def interpreter(self, pid: int) -> int | None:
        """bwrap waits outside; its child is the first process of the cell, and the program is that one's child."""
        first = children(pid)
        program = children(first[0]) if first else []
        return program[0] if program else None

    def stop_command(self, cell: Cell) -> list[str] | None:
        return None

    def _user(self) -> list[str]:
        if self._is_root:
            # To give up the user, and before that to enter a folder that is only for that user. All of it is gone
            # when the program starts.
            needed = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_DAC_READ_SEARCH")
            return ["--cap-drop", "ALL", *(word for right in needed for word in ("--cap-add", right))]
        nobody = str(NOBODY)
        mapped = ["--unshare-user", "--disable-userns", "--uid", nobody, "--gid", nobody]
        return [*mapped, "--cap-drop", "ALL"]

    def _runs_as(self, cell: Cell) -> tuple[int, int]:
        """For root, whoever owns the folder code works in; in a user namespace it is nobody by name only."""
        if not self._is_root or not cell.writable:
            return NOBODY, NOBODY
        status = cell.writable[0].source.stat()
        return (status.st_uid, status.st_gid or NOBODY) if status.st_uid else (NOBODY, NOBODY)

    def _drop(self, user: int, group: int) -> list[str]:
        if not self._is_root:
            return []
        ids = ["--reuid", str(user), "--regid", str(group), "--clear-groups"]
        return [self._program("setpriv"), *ids, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]

    def _limited(self, cell: Cell, user: int) -> list[str]:
        """The data limit counts what a process can write, and not the address space that Node only reserves."""
        limits = cell.limits
        arguments = [self._program("prlimit"), f"--data={limits.memory_bytes}", f"--fsize={limits.file_bytes}"]
        arguments += ["--nofile=1024", "--core=0"]
        if self._counted_alone(user):
            arguments.append(f"--nproc={limits.processes}")
        if limits.cpu_seconds is not None:
            arguments.append(f"--cpu={limits.cpu_seconds}")
        return [*arguments, "--"]

    def _counted_alone(self, user: int) -> bool:
        """Whether the kernel's limit would count the cell's processes only: not those of a person who is at work
        outside. Where it would not, the watch over the cell is what limits them."""
        if self._is_root:
            return user == NOBODY or user >= FIRST_USER
        return self._kernel >= _COUNTS_BY_NAMESPACE

    def _program(self, name: str) -> str:
        return self._which(name) or f"/usr/bin/{name}"


def _parents(cell: Cell) -> list[str]:
    above = {str(parent) for mount in cell.mounts for parent in PurePosixPath(mount.target).parents}
    return sorted(above - {"/", "/usr", SCRATCH})


def _is_real_root() -> bool:
    """Root of the machine; root of a user namespace is somebody else outside, and counts as an ordinary user."""
    if os.geteuid() != 0:
        return False
    with contextlib.suppress(OSError, ValueError, IndexError):
        inside, outside = Path("/proc/self/uid_map").read_text().split()[:2]
        return not (int(inside) == 0 and int(outside) != 0)
    return True


def _kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
