"""Files that run by a click: no tool call makes one, wherever its bytes come from."""

from __future__ import annotations

import os

from annabelle.core.errors import NotAllowed
from annabelle.servers.kit.files.layout import SCRIPTS
from annabelle.servers.kit.files.places import Spot

_PROGRAMS = frozenset(
    {
        *(".exe", ".bat", ".cmd", ".com", ".scr", ".pif", ".msi", ".ps1", ".vbs", ".hta", ".lnk", ".reg"),  # Windows
        *(".command", ".desktop"),  # macOS and Linux
    }
)


def refuse_program(spot: Spot, source: Spot | None = None) -> None:
    """Raise for a name that would be a program. Moving a program the user already has is not making one."""
    suffix = _suffix(spot.name)
    if source is not None and _suffix(source.name) == suffix:
        return
    if suffix in _PROGRAMS:
        raise NotAllowed(f"Files ending in {suffix} are not created.", field="path")
    if suffix == ".sh" and not (spot.root.workspace and spot.names[: len(SCRIPTS)] == SCRIPTS):
        raise NotAllowed("Shell scripts are created only in Code/bash/ of the workspace.", field="path")


def _suffix(name: str) -> str:
    """As the most careless system reads it: case does not count, nor do dots and spaces at the end."""
    return os.path.splitext(name.casefold().rstrip(". "))[1]
