"""Run a command that can reach loopback and nothing else: `isolated.py COMMAND [ARGUMENT …]`.

On Linux the command, and every process it starts, lives in a network namespace of its own. Where the system forbids
that, Python processes are held back by a guard instead (`tests/support/network.py`), and a line says so.

As root, and where memory is plenty, what the tests write also lies in memory, until the command ends: half of a test
with a new home is waiting for a disk.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import struct
import sys
import tempfile
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
VARIABLE = "ANNABELLE_TEST_NETWORK"  # namespace or guard, for the tests that prove it
TEST_FOLDER = "PYTEST_DEBUG_TEMPROOT"  # where pytest has its folders
MEMORY_BYTES = 4 << 30  # tests need far less at once; what they leave is deleted
GUARD = Path(__file__).resolve().parent.parent / "tests" / "support" / "loopback_only"


def enter_namespace() -> None:
    """Move this process into an empty network; raises OSError where that is not allowed."""
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, "this system has no network namespaces")
    try:
        _unshare(CLONE_NEWNET)
    except PermissionError:
        # Not the machine's root: a user namespace grants the right. Mapping the user to itself keeps file permissions
        # and programs that refuse to run as root behaving as they do outside.
        user, group = os.geteuid(), os.getegid()
        _unshare(CLONE_NEWUSER | CLONE_NEWNET)
        with contextlib.suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _raise_loopback()


def keep_in_memory() -> None:
    """Have pytest write into memory only these processes see; raises OSError where that is not allowed."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return  # a program's own sandbox may depend on who owns the mounts around it
    if TEST_FOLDER in os.environ or _available_memory() < 2 * MEMORY_BYTES:
        return
    folder = Path(tempfile.gettempdir(), "pytest-ram")
    folder.mkdir(exist_ok=True)
    _unshare(CLONE_NEWNS)
    _mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    _mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"mode=0700,size=%d" % MEMORY_BYTES)
    # Not the same paths as in another run: tests look for processes by the home these work in.
    own = folder / str(os.getpid())
    own.mkdir()
    os.environ[TEST_FOLDER] = str(own)


def _available_memory() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def _unshare(flags: int) -> None:
    _check(_libc().unshare(flags))


def _mount(what: bytes, where: bytes, kind: bytes | None, flags: int, options: bytes | None) -> None:
    _check(_libc().mount(what, where, kind, ctypes.c_ulong(flags), options))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(returned: int) -> None:
    if returned != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _raise_loopback() -> None:
    import fcntl  # noqa: PLC0415  absent on Windows, where the function above has already said no

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(control, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | IFF_UP, b""))


def main(argv: list[str]) -> int:
    if not argv:
        sys.stderr.write("usage: isolated.py COMMAND [ARGUMENT …]\n")
        return 2
    try:
        enter_namespace()
        os.environ[VARIABLE] = "namespace"
    except OSError as error:
        sys.stderr.write(
            f"No network namespace here ({error.strerror}); a guard inside each Python process keeps to loopback.\n"
        )
        os.environ[VARIABLE] = "guard"
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(GUARD), os.environ.get("PYTHONPATH")]))
    with contextlib.suppress(OSError):  # then they write to the disk
        keep_in_memory()
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"{argv[0]} could not be started: {error.strerror}.\n")
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
