"""Where the workspace is, and which files of Annabelle's own no path may reach."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home
from annabelle.servers.kit.files.forbidden import Forbidden, below

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
        """As this process's environment says; places that would give away what must not be reached are refused."""
        home = Home.from_environment()
        config = cls(
            home=home,
            user_home=Path.home().absolute(),
            workspace=path_variable("WORKSPACE_PATH", home.workspace),
            grants_file=path_variable("FILER_GRANTS_PATH", home.config / "filer-grants.json"),
            audit_file=path_variable("AUDIT_LOG_PATH", home.logs / "filer-audit.jsonl"),
            cleanup_days=_days("TEMP_CLEANUP_DAYS", 7),
        )
        config.refuse_bad_workspace()
        return config

    def forbidden(self) -> Forbidden:
        """What no path may reach: keys and settings of the user, the system, and Annabelle's own files."""
        old_logs = [
            self.audit_file.with_name(f"{self.audit_file.name}.{number}") for number in range(1, AUDIT_FILES + 1)
        ]
        return Forbidden(self.user_home, [self.home.root, self.grants_file, self.audit_file, *old_logs])

    def refuse_bad_workspace(self) -> None:
        """ConfigMistake when the workspace is a protected place, or what guards it lies inside it."""
        workspace, default = Path(os.path.realpath(self.workspace)), Path(os.path.realpath(self.home.workspace))
        if self.forbidden().covers(workspace) and below(workspace, default) is None:
            raise ConfigMistake(
                f"WORKSPACE_PATH may not be {self.workspace}: it is a protected place.", field="WORKSPACE_PATH"
            )
        for name, file in (("FILER_GRANTS_PATH", self.grants_file), ("AUDIT_LOG_PATH", self.audit_file)):
            if below(Path(os.path.realpath(file)), workspace) is not None:
                raise ConfigMistake(f"{name} may not be inside the workspace: tools can write there.", field=name)


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
