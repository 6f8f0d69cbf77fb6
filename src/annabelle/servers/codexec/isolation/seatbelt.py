"""Isolation on macOS: the system's sandbox with a deny-by-default profile."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable

from annabelle.servers.codexec.isolation.backend import Mount, SandboxBackend, SandboxSpec

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library/Apple",
    "/Library/Frameworks",
    "/Library/Developer",
    "/private/var/db/timezone",
)
_SYSTEM_FILES = ("/", "/private/etc/localtime", "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")

_LIMITED = 'ulimit -u "$1" -f "$2" -c 0 -t "$3"; shift 3; exec "$@"'
"""macOS has no command that sets limits. The shell text is fixed; all values are passed as arguments."""


class Seatbelt(SandboxBackend):
    """Runs a sandbox with `sandbox-exec`, as the same user. Paths are the same inside and outside, and the profile
    refuses system calls."""

    name = "seatbelt"

    def __init__(self, which: Callable[[str], str | None] = shutil.which, platform: str = sys.platform) -> None:
        self._which = which
        self._platform = platform

    def missing(self) -> str | None:
        if self._platform != "darwin":
            return "seatbelt works on macOS only"
        return None if self._which("sandbox-exec") else "sandbox-exec is not there"

    def place(self, mount: Mount) -> str:
        return str(mount.source)

    def command(self, sandbox: SandboxSpec, call_filter: int | None = None) -> list[str]:
        limits = sandbox.limits
        blocks = max(limits.file_bytes // 512, 1)
        seconds = limits.cpu_seconds if limits.cpu_seconds is not None else "unlimited"
        limited = ["/bin/sh", "-c", _LIMITED, "limited", str(limits.processes), str(blocks), str(seconds)]
        return [self._which("sandbox-exec") or "sandbox-exec", "-p", profile(sandbox), *limited, *sandbox.argv]

    def interpreter(self, pid: int) -> int | None:
        return pid  # sandbox-exec and the shell exec the program


def profile(sandbox: SandboxSpec) -> str:
    """Allow only reading the system, using the sandbox's mounts and signalling its own processes."""
    readable = [f"(subpath {_quoted(place)})" for place in _SYSTEM]
    readable += [f"(literal {_quoted(place)})" for place in _SYSTEM_FILES]
    readable += [f"(subpath {_quoted(str(mount.source))})" for mount in sandbox.mounts]
    writable = [f"(subpath {_quoted(str(mount.source))})" for mount in sandbox.writable]
    writable += ['(literal "/dev/null")']
    lines = [
        "(version 1)",
        "(deny default)",
        '(import "system.sb")',  # needed to load any program
        "(allow process-fork)",
        "(allow process-exec)",
        "(allow signal (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow file-read-metadata)",
        f"(allow file-read* {' '.join(readable)})",
        f"(allow file-write* {' '.join(writable)})",
        "(allow network*)" if sandbox.network else "(deny network*)",
    ]
    if sandbox.network:
        lines.append('(allow mach-lookup (global-name "com.apple.dnssd.service"))')
    return "\n".join(lines)


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
