"""System calls that code never needs and attackers do: refused by the kernel itself.

Namespaces of its own are the first of them: in one, code would have rights again and could reach much more of the
kernel. The filter is a small program for the kernel, put together here because its format is simple and fixed.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

_LOAD, _EQUAL, _GREATER_EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000, 0x80000000

_NAMESPACES = 0x7E020000
"""All CLONE_NEW… flags of clone and unshare."""

_OTHER_NUMBERS = 0x40000000
"""Calls of the x32 kind, which would pass by numbers the filter does not know."""

_LOCAL = (1,)
_OUTSIDE = (2, 10, 16)
"""Kinds of sockets: those inside the machine; those of a network, and the way to ask for its interfaces. All others
reach what no namespace holds apart (AF_VSOCK the host of a virtual machine), or parts of the kernel hardly used."""


@dataclass(frozen=True, slots=True)
class _Machine:
    architecture: int
    clone: int
    unshare: int
    sockets: tuple[int, int]
    refused: tuple[int, ...]


_SAME_EVERYWHERE = (428, 429, 430, 431, 432, 433, 442)  # the newer ways to mount
_UNKNOWN = (425, 426, 427, 435)  # io_uring and clone3: programs know how to do without
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
    """The filter for this kind of machine; None where its calls are not known here."""
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
    """Lets sockets of these kinds be made, alone or in pairs, and answers for all others as a kernel without them."""
    body = [_step(_LOAD, _FIRST_ARGUMENT)]
    for family in allowed:
        body += [_step(_EQUAL, family, 0, 1), _step(_RETURN, _ALLOW)]
    body.append(_step(_RETURN, _REFUSE | errno.EAFNOSUPPORT))
    single, pair = sockets
    return [_step(_EQUAL, single, 1, 0), _step(_EQUAL, pair, 0, len(body)), *body]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
