"""Isolation on Linux: bubblewrap namespaces, kernel limits and an unprivileged user.

An ordinary user gets a user namespace, in which the code is `nobody` without capabilities. Root lets bubblewrap set up
the namespaces and then drops its user id for good: a process mapped to root could write to /proc/sys, and the process
limit would not apply to it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import re
import shutil
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from annabelle.servers.codexec.isolation.backend import (
    FIRST_USER,
    NOBODY,
    SANDBOX_HOME,
    SCRATCH,
    SandboxBackend,
    SandboxSpec,
    give_folder,
    give_to_new_user,
)
from annabelle.servers.codexec.isolation.process_tree import list_children

_LOAD, _EQUAL, _GREATER_EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000

_NAMESPACES = 0x7E020000
"""All CLONE_NEW… flags of clone and unshare."""

_OTHER_NUMBERS = 0x40000000
"""x32 calls, whose numbers the filter does not know."""

_LOCAL = (1,)
_OUTSIDE = (2, 10, 16)
"""Socket families: local ones, and those of a network with netlink. All others reach what namespaces do not isolate
(AF_VSOCK reaches the host of a virtual machine) or rarely used parts of the kernel."""


@dataclass(frozen=True, slots=True)
class _Machine:
    architecture: int
    clone: int
    unshare: int
    sockets: tuple[int, int]
    refused: tuple[int, ...]


_SAME_EVERYWHERE = (428, 429, 430, 431, 432, 433, 442)  # newer mount calls
_UNKNOWN = (425, 426, 427, 435)  # io_uring and clone3: programs fall back without them
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        clone=56,
        unshare=272,
        sockets=(41, 53),
        # ptrace, pivot_root, chroot, acct, settimeofday, mount … reboot, modules, quota, kexec, keys, perf, file
        # handles, setns, other processes' memory, kcmp, bpf, userfaultfd
        refused=(101, 155, 161, 163, 164, 165, 166, 167, 168, 169, 175, 176, 179, 246, 248, 249, 250, 298, 303, 304,
                 308, 310, 311, 312, 313, 320, 321, 323),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        clone=220,
        unshare=97,
        sockets=(198, 199),
        refused=(39, 40, 41, 51, 60, 89, 104, 105, 106, 117, 142, 170, 217, 218, 219, 224, 225, 241, 264, 265, 268, 270,
                 271, 272, 273, 280, 282, 294),
    ),
}  # fmt: skip


def call_filter(machine: str | None = None, *, network: bool = False) -> bytes | None:
    """Seccomp filter for this architecture, or None if its call numbers are not known here."""
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    refuse, unknown = _REFUSE | errno.EPERM, _REFUSE | errno.ENOSYS
    program = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, known.architecture, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
        _step(_GREATER_EQUAL, _OTHER_NUMBERS, 0, 1),
        _step(_RETURN, unknown),
    ]
    for number in (*known.refused, *_SAME_EVERYWHERE):
        program += [_step(_EQUAL, number, 0, 1), _step(_RETURN, refuse)]
    for number in _UNKNOWN:
        program += [_step(_EQUAL, number, 0, 1), _step(_RETURN, unknown)]
    program += _families(known.sockets, (*_LOCAL, *(_OUTSIDE if network else ())))
    program += [
        _step(_EQUAL, known.clone, 1, 0),
        _step(_EQUAL, known.unshare, 0, 3),
        _step(_LOAD, _FIRST_ARGUMENT),
        _step(_ANY_BIT, _NAMESPACES, 0, 1),
        _step(_RETURN, refuse),
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(program)


def _families(sockets: tuple[int, int], allowed: tuple[int, ...]) -> list[bytes]:
    """Allow sockets of these families, and answer for all others like a kernel without them."""
    body = [_step(_LOAD, _FIRST_ARGUMENT)]
    for family in allowed:
        body += [_step(_EQUAL, family, 0, 1), _step(_RETURN, _ALLOW)]
    body.append(_step(_RETURN, _REFUSE | errno.EAFNOSUPPORT))
    single, pair = sockets
    return [_step(_EQUAL, single, 1, 0), _step(_EQUAL, pair, 0, len(body)), *body]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


_TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "ssl", "ca-certificates", "pki", "localtime")
_ETC_WITH_NETWORK = ("resolv.conf", "hosts", "nsswitch.conf", "gai.conf")


def system_arguments(network: bool, root: Path = Path("/")) -> list[str]:
    """Arguments with which bubblewrap shows the system read-only."""
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in _TOP:
        place = root / name
        if place.is_symlink():
            arguments += ["--symlink", str(place.readlink()), f"/{name}"]
        elif place.is_dir():
            arguments += ["--ro-bind", str(place), f"/{name}"]
    arguments += ["--perms", "0755", "--dir", "/etc"]
    for name in (*_ETC, *(_ETC_WITH_NETWORK if network else ())):
        place = root / "etc" / name
        if place.exists():  # a link is followed: resolv.conf often is one
            arguments += ["--ro-bind", str(place.resolve()), f"/etc/{name}"]
    return arguments


INSTALL = "sudo apt-get install bubblewrap"
_SCRATCH_SHARE = 4
"""The scratch folder is in memory and gets this fraction (1/n) of the memory limit."""

_COUNTS_BY_NAMESPACE = (5, 14)
"""First kernel that counts a user's processes per user namespace."""

_NAMESPACE_OPTIONS = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")


class Bubblewrap(SandboxBackend):
    name = "bubblewrap"

    def __init__(self, *, is_root: bool | None = None, which: Callable[[str], str | None] = shutil.which) -> None:
        self._is_root = _is_real_root() if is_root is None else is_root
        self._which = which
        self._kernel = _kernel_version()

    def missing(self) -> str | None:
        if not sys.platform.startswith("linux"):
            return "bubblewrap works on Linux only"
        for program in ("bwrap", "prlimit", *(("setpriv",) if self._is_root else ())):
            if self._which(program) is None:
                return f"{program} is not installed"
        return None

    def prepare(self, folder: Path, *, private: bool) -> None:
        """As root, give each private folder its own user: the kernel counts processes by user, over all sandboxes."""
        if not self._is_root:
            return
        if private:
            give_to_new_user(folder)
        else:
            give_folder(folder, NOBODY)

    def call_filter(self, sandbox: SandboxSpec) -> bytes | None:
        return call_filter(network=sandbox.network)

    def command(self, sandbox: SandboxSpec, call_filter: int | None = None) -> list[str]:
        scratch = str(max(sandbox.limits.memory_bytes // _SCRATCH_SHARE, 1_048_576))
        arguments = [self._program("bwrap"), *_NAMESPACE_OPTIONS, *([] if sandbox.network else ["--unshare-net"])]
        arguments += ["--die-with-parent", "--new-session", "--hostname", "cell", *self._user()]
        arguments += [] if call_filter is None else ["--seccomp", str(call_filter)]
        arguments += system_arguments(sandbox.network)
        arguments += ["--proc", "/proc", "--dev", "/dev"]
        for place in (SCRATCH, "/dev/shm"):  # noqa: S108  inside the sandbox
            arguments += ["--perms", "1777", "--size", scratch, "--tmpfs", place]
        arguments += ["--perms", "1777", "--dir", SANDBOX_HOME]
        for parent in _mount_parents(sandbox):  # bwrap would make them for root only
            arguments += ["--perms", "0755", "--dir", parent]
        for mount in sandbox.mounts:
            arguments += ["--bind" if mount.writable else "--ro-bind", str(mount.source), mount.target]
        arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", sandbox.folder, "--"]
        user, group = self._runs_as(sandbox)
        return [*arguments, *self._drop(user, group), *self._limited(sandbox, user), *sandbox.argv]

    def interpreter(self, pid: int) -> int | None:
        """bwrap waits outside. Its child is the sandbox's first process, which starts the program."""
        first = list_children(pid)
        program = list_children(first[0]) if first else []
        return program[0] if program else None

    def _user(self) -> list[str]:
        if self._is_root:
            # To drop the user id, and before that to enter a folder of that user. The program starts without them.
            needed = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_DAC_READ_SEARCH")
            return ["--cap-drop", "ALL", *(word for right in needed for word in ("--cap-add", right))]
        nobody = str(NOBODY)
        mapped = ["--unshare-user", "--disable-userns", "--uid", nobody, "--gid", nobody]
        return [*mapped, "--cap-drop", "ALL"]

    def _runs_as(self, sandbox: SandboxSpec) -> tuple[int, int]:
        """As root, the owner of the work folder. In a user namespace, nobody."""
        if not self._is_root or not sandbox.writable:
            return NOBODY, NOBODY
        status = sandbox.writable[0].source.stat()
        return (status.st_uid, status.st_gid or NOBODY) if status.st_uid else (NOBODY, NOBODY)

    def _drop(self, user: int, group: int) -> list[str]:
        if not self._is_root:
            return []
        ids = ["--reuid", str(user), "--regid", str(group), "--clear-groups"]
        return [self._program("setpriv"), *ids, "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"]

    def _limited(self, sandbox: SandboxSpec, user: int) -> list[str]:
        """The data limit counts writable memory, not the address space that Node only reserves."""
        limits = sandbox.limits
        arguments = [self._program("prlimit"), f"--data={limits.memory_bytes}", f"--fsize={limits.file_bytes}"]
        arguments += ["--nofile=1024", "--core=0"]
        if self._counted_alone(user):
            arguments.append(f"--nproc={limits.processes}")
        if limits.cpu_seconds is not None:
            arguments.append(f"--cpu={limits.cpu_seconds}")
        return [*arguments, "--"]

    def _counted_alone(self, user: int) -> bool:
        """Whether the kernel's process limit counts only the sandbox. Otherwise LimitWatch enforces it."""
        if self._is_root:
            return user == NOBODY or user >= FIRST_USER
        return self._kernel >= _COUNTS_BY_NAMESPACE

    def _program(self, name: str) -> str:
        return self._which(name) or f"/usr/bin/{name}"


def _mount_parents(sandbox: SandboxSpec) -> list[str]:
    above = {str(parent) for mount in sandbox.mounts for parent in PurePosixPath(mount.target).parents}
    return sorted(above - {"/", "/usr", SCRATCH})


def _is_real_root() -> bool:
    """Root of the machine. Root of a user namespace counts as an ordinary user."""
    if os.geteuid() != 0:
        return False
    with contextlib.suppress(OSError, ValueError, IndexError):
        inside, outside = Path("/proc/self/uid_map").read_text().split()[:2]
        return not (int(inside) == 0 and int(outside) != 0)
    return True


def _kernel_version() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])
