"""An agent's profile: its logins and cookies, kept apart from every other agent's."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import sys
import time
from pathlib import Path

from annabelle.core.errors import StorageTrouble, Unavailable
from annabelle.servers.kit import in_thread
from annabelle.servers.web.traces import keep_quiet

INCOMING = "Incoming"
"""Where a file is written while it comes down."""

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_LOCKS = ("SingletonLock", "SingletonCookie", "SingletonSocket")
_LEAVE_SECONDS = 5.0
_LOOK_SECONDS = 0.1


def profile_of(profiles: Path, agent: str) -> Path:
    """The folder of an agent's profile. An id that is not plain gets a name made from it, so that no two meet, also
    where the file system does not tell upper from lower case."""
    name = agent if _PLAIN.fullmatch(agent) else f"agent-{hashlib.sha256(agent.encode(errors='replace')).hexdigest()}"
    return profiles / name[:72]


async def prepare_profile(profile: Path) -> None:
    """Make the profile, and clear away what a browser that was killed left in it."""
    await in_thread(lambda _stop: _make(profile))
    await _wait_for_owner(profile)
    await in_thread(lambda _stop: _clear(profile))


def _make(profile: Path) -> None:
    try:
        profile.mkdir(parents=True, exist_ok=True, mode=0o700)
        profile.parent.chmod(0o700)
    except OSError as error:
        raise StorageTrouble(
            f"The browser's profile can not be made: {error.strerror}.", hint="Check the permissions of the home."
        ) from error


def _clear(profile: Path) -> None:
    for name in _LOCKS:
        with contextlib.suppress(OSError):
            (profile / name).unlink(missing_ok=True)
    shutil.rmtree(profile / INCOMING, ignore_errors=True)
    keep_quiet(profile)


async def _wait_for_owner(profile: Path) -> None:
    """A browser whose server was killed notices it within moments and ends; until then the profile is its."""
    until = time.monotonic() + _LEAVE_SECONDS
    while (owner := _owner(profile)) is not None and _uses(owner, profile):
        if time.monotonic() > until:
            raise Unavailable(
                f"Another browser (process {owner}) still uses this agent's profile.", hint="Close it and call again."
            )
        await asyncio.sleep(_LOOK_SECONDS)


def _owner(profile: Path) -> int | None:
    """The process id in the lock, which is a link to `host-pid`."""
    try:
        number = os.readlink(profile / _LOCKS[0]).rsplit("-", 1)[-1]
    except OSError:
        return None
    return int(number) if number.isdecimal() else None


def _uses(process: int, profile: Path) -> bool:
    """Whether this process is a browser on this profile: after a crash its number may belong to anyone."""
    if sys.platform == "linux":
        try:
            return os.fsencode(profile) in Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            return False
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True
