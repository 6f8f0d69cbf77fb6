"""Where the workspace is, and which files of Annabelle's own no path may reach."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home

VARIABLES = ("WORKSPACE_PATH", "FILER_GRANTS_PATH", "AUDIT_LOG_PATH", "TEMP_CLEANUP_DAYS")
"""What the manifest of a server that uses the workspace has to ask for."""

AUDIT_FILES = 5
"""How many older audit logs are kept beside the newest."""


@dataclass(frozen=True, slots=True)
class FilesConfig:
    """The places by which a path is judged."""

    home: Home
    user_home: Path
    workspace: Path
    grants_file: Path
    audit_file: Path
    cleanup_days: float = 7

    @classmethod
    def from_environment(cls) -> FilesConfig:
        home = Home.from_environment()
        return cls(
            home=home,
            user_home=Path.home().absolute(),
            workspace=path_variable("WORKSPACE_PATH", home.workspace),
            grants_file=path_variable("FILER_GRANTS_PATH", home.config / "filer-grants.json"),
            audit_file=path_variable("AUDIT_LOG_PATH", home.logs / "filer-audit.jsonl"),
            cleanup_days=_days("TEMP_CLEANUP_DAYS", 7),
        )


def path_variable(variable: str, default: Path) -> Path:
    """The absolute path an environment variable names, or the default."""
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
