"""What the filer is told by its environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home

FOLDERS = (
    "Documents",
    "Notes",
    "Code/python",
    "Code/node",
    "Code/bash",
    "Data",
    "Images",
    "Media",
    "Downloads",
    "Exports",
    "temp",
)
"""Made in the workspace at first use."""

TEMP = "temp"
BACKUPS = "temp/backups"
TRASH = "temp/trash"
SCRIPTS = ("Code", "bash")
"""The one folder in which shell scripts may be made."""


@dataclass(frozen=True, slots=True)
class FilerConfig:
    """Where the filer works and what it may never touch."""

    home: Home
    user_home: Path
    workspace: Path
    grants_file: Path
    audit_file: Path
    cleanup_days: float = 7

    @classmethod
    def from_environment(cls) -> FilerConfig:
        home = Home.from_environment()
        return cls(
            home=home,
            user_home=Path.home().absolute(),
            workspace=_path("WORKSPACE_PATH", home.workspace),
            grants_file=_path("FILER_GRANTS_PATH", home.config / "filer-grants.json"),
            audit_file=_path("AUDIT_LOG_PATH", home.logs / "filer-audit.jsonl"),
            cleanup_days=_days("TEMP_CLEANUP_DAYS", 7),
        )


def _path(variable: str, default: Path) -> Path:
    value = os.environ.get(variable)
    return Path(value).expanduser().absolute() if value else default


def _days(variable: str, default: float) -> float:
    value = os.environ.get(variable)
    if not value:
        return default
    try:
        days = float(value)
    except ValueError:
        days = 0.0
    if not 0 < days <= 36_500:
        raise ConfigMistake(f"{variable} must be a number of days above 0, not {value!r}.", field=variable)
    return days
