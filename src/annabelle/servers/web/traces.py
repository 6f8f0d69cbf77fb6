"""What a browser writes to disk of what was typed into it: a password may be among it, so it stays off the disk."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import cast

_PREFERENCES = Path("Default") / "Preferences"
_PILES = ("Default/Sessions", "Default/Cache", "Default/Code Cache", "segmentation_platform")
_FILES = ("Default/History*", "Default/Favicons*", "Default/Top Sites*", "Default/Shortcuts*", "Default/Visited Links")
"""Forms as they were when the browser ended, pages that repeat what was sent to them, and addresses that hold it."""
_QUIET: dict[str, dict[str, object]] = {
    "autofill": {"enabled": False, "profile_enabled": False, "credit_card_enabled": False},
    "profile": {"password_manager_enabled": False},
}


def keep_quiet(profile: Path) -> None:
    """Before a start: keep no words of forms for another time, and no trace of a browser that was killed."""
    forget_typed(profile)
    file = profile / _PREFERENCES
    try:
        read: object = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        read = {}
    known = cast("dict[str, object]", read) if isinstance(read, dict) else {}
    for name, wanted in _QUIET.items():
        before = known.get(name)
        known[name] = {**(cast("dict[str, object]", before) if isinstance(before, dict) else {}), **wanted}
    known["credentials_enable_service"] = False
    with contextlib.suppress(OSError):  # a disk that is full says so when the browser starts
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_text(json.dumps(known), encoding="utf-8")


def forget_typed(profile: Path) -> None:
    """After an end: what can not be switched off is removed. Logins and cookies stay."""
    for pile in _PILES:
        shutil.rmtree(profile / pile, ignore_errors=True)
    for name in _FILES:
        for file in profile.glob(name):
            with contextlib.suppress(OSError):
                file.unlink()
