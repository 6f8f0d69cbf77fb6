"""Run a command that can reach loopback and nothing else: `isolated.py COMMAND [ARGUMENT …]`.

On Linux the command, and every process it starts, lives in a network namespace of its own. Where the system forbids
that, Python processes are held back by a guard instead (`tests/support/network.py`), and a line says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import struct
import sys
from pathlib import Path

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
VARIABLE = "ANNABELLE_TEST_NETWORK"  # namespace or guard, for the tests that prove it
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


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
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
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"{argv[0]} could not be started: {error.strerror}.\n")
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
