"""Work on the home itself that is scheduled like any skill, so that all that runs by itself is in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Final

from annabelle.core.clock import Clock
from annabelle.core.home import Home
from annabelle.core.result_text import format_size
from annabelle.core.settings import Settings
from annabelle.skills.skill_input import SYSTEM
from annabelle.store.home_backup import back_up_home

SystemWork = Mapping[str, Callable[[], Awaitable[str]]]
"""By the name that a plan calls it; each says what it did."""
_PREFIX: Final = "home-"
ARCHIVE: Final = ".zip"


def make_system_work(home: Home, settings: Settings, clock: Clock) -> SystemWork:
    async def back_up() -> str:
        return await asyncio.to_thread(_back_up, home, settings, clock.now())

    return {f"{SYSTEM}backup": back_up}


def _back_up(home: Home, settings: Settings, at: datetime) -> str:
    """Writes a backup without secrets, and removes the oldest ones."""
    home.backups.mkdir(parents=True, exist_ok=True)
    target = home.backups / f"{_PREFIX}{at:%Y%m%d-%H%M%S}{ARCHIVE}"
    report = back_up_home(home, target, settings, passphrase=None, force=True, progress=lambda _done, _all: None)
    kept = sorted(home.backups.glob(f"{_PREFIX}*{ARCHIVE}"))
    for old in kept[: -settings.backup_keep]:
        old.unlink(missing_ok=True)
    return f"Backed up to {target.name} ({format_size(report.size_bytes)})."
