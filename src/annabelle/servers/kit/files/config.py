"""Where the workspace is, and which places no path may reach."""

from __future__ import annotations

import contextlib
import os
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home

Identity = tuple[int, int]
"""Device and inode: what a file is, however it is called."""

_IN_USER_HOME = (".ssh", ".gnupg", ".aws", ".config")
_OF_THE_SYSTEM = ("/etc", "/var", "/proc", "/sys", "/dev")


class ForbiddenPaths:
    """Knows forbidden places by name (also in other case and through links) and by identity."""

    def __init__(self, user_home: Path, own: Iterable[Path]) -> None:
        self._paths = [*(user_home / name for name in _IN_USER_HOME), *map(Path, _OF_THE_SYSTEM), *own]
        self._names = {fold_path(place) for path in self._paths for place in (path, Path(os.path.realpath(path)))}

    def covers(self, path: Path) -> bool:
        """Whether the path is a forbidden place or inside one."""
        names = fold_path(path)
        return any(names[:length] in self._names for length in range(1, len(names) + 1))

    def is_place(self, path: Path) -> bool:
        """Whether the path is itself a forbidden place; enough when everything above it was looked at."""
        return fold_path(path) in self._names

    def below(self, path: Path) -> bool:
        """Whether a forbidden place lies inside the path, so that moving the path would move it too."""
        names = fold_path(path)
        return any(place[: len(names)] == names for place in self._names)

    def identities(self) -> set[Identity]:
        """What the places are right now. Asked again for each operation: they may appear while the filer runs."""
        found: set[Identity] = set()
        for path in self._paths:
            with contextlib.suppress(OSError):
                status = os.stat(path)
                found.add((status.st_dev, status.st_ino))
        return found


def fold_path(path: Path) -> tuple[str, ...]:
    """Names to compare by: some file systems take Keys, keys and a decomposed spelling for the same name."""
    return tuple(unicodedata.normalize("NFC", name).casefold() for name in path.parts)


def names_below(path: Path, root: Path) -> tuple[str, ...] | None:
    """The names from `root` down to `path`, or None when it is not inside."""
    count = len(root.parts)
    return path.parts[count:] if path.parts[:count] == root.parts else None


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

    def forbidden(self) -> ForbiddenPaths:
        """What no path may reach: keys and settings of the user, the system, and Annabelle's own files."""
        old_logs = [
            self.audit_file.with_name(f"{self.audit_file.name}.{number}") for number in range(1, AUDIT_FILES + 1)
        ]
        return ForbiddenPaths(self.user_home, [self.home.root, self.grants_file, self.audit_file, *old_logs])

    def refuse_bad_workspace(self) -> None:
        """ConfigMistake when the workspace is a protected place, or what guards it lies inside it."""
        workspace, default = Path(os.path.realpath(self.workspace)), Path(os.path.realpath(self.home.workspace))
        if self.forbidden().covers(workspace) and names_below(workspace, default) is None:
            raise ConfigMistake(
                f"WORKSPACE_PATH may not be {self.workspace}: it is a protected place.", field="WORKSPACE_PATH"
            )
        for name, file in (("FILER_GRANTS_PATH", self.grants_file), ("AUDIT_LOG_PATH", self.audit_file)):
            if names_below(Path(os.path.realpath(file)), workspace) is not None:
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
