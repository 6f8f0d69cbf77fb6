"""Resolves a path to a place in the workspace or a granted folder, or refuses it."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from annabelle.core.errors import InvalidArguments, NotAllowed, first_problem
from annabelle.servers.kit.files.config import FilesConfig, ForbiddenPaths, fold_path, names_below

MAX_PATH_CHARS = 4096
MAX_NAME_BYTES = 255

_DECEPTIVE = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks that reorder what a reader sees: `txt.exe` can be made to look like `exe.txt`."""

_SEPARATORS = re.compile(r"[/\\]")
_DECODINGS = 3


def split_path(path: str, field: str = "path") -> tuple[bool, tuple[str, ...]]:
    """Whether the path is absolute, and its names. `~` is left to the caller; `.` and empty names are dropped."""
    if len(path) > MAX_PATH_CHARS:
        raise InvalidArguments(f"The path is longer than {MAX_PATH_CHARS} characters.", field=field)
    if "\0" in path:
        raise InvalidArguments("The path contains a NUL byte.", field=field)
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in path) or _DECEPTIVE.search(path):
        raise InvalidArguments("The path contains control characters.", field=field)
    _refuse_climbing(path, field)
    absolute = path.startswith("/")
    # One spelling per name: an accented letter may be written as one character or as two.
    names = tuple(name for name in unicodedata.normalize("NFC", path).split("/") if name not in ("", "."))
    if any(len(name.encode()) > MAX_NAME_BYTES for name in names):
        raise InvalidArguments(f"A name in the path is longer than {MAX_NAME_BYTES} bytes.", field=field)
    return absolute, names


def _refuse_climbing(path: str, field: str) -> None:
    """`..` is never needed, also not percent-encoded once, twice or three times, nor between backslashes."""
    seen = path
    for _ in range(_DECODINGS + 1):
        if any(name.strip() == ".." for name in _SEPARATORS.split(seen)):
            raise NotAllowed(
                "The path contains '..', which is never followed.",
                hint="Give the path from the workspace, or an absolute one.",
                field=field,
            )
        if "\0" in seen:
            raise InvalidArguments("The path contains a NUL byte.", field=field)
        decoded = unquote(seen)
        if decoded == seen:
            return
        seen = decoded


def other_spelling(name: str) -> str | None:
    """The same name in decomposed form, as some systems store it; None when there is only one form."""
    decomposed = unicodedata.normalize("NFD", name)
    return decomposed if decomposed != name else None


_log = logging.getLogger(__name__)

Permission = Literal["read", "read-write"]
_MAX_BYTES = 1_000_000


class GrantEntry(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1)
    permission: Permission
    reason: str | None = None


class GrantsFile(BaseModel):
    """The file: `{"grants": [{"path": "/home/me/Documents", "permission": "read"}]}`."""

    model_config = ConfigDict(extra="forbid")

    grants: list[GrantEntry] = Field(default_factory=list[GrantEntry])


@dataclass(frozen=True, slots=True)
class Grant:
    """An opened folder or file: as written, and where it really is."""

    path: Path
    real: Path
    permission: Permission
    reason: str | None = None


class Grants:
    """The grants in force. The file is read again when it changes; a bad one leaves the last good grants in force."""

    def __init__(self, file: Path, forbidden: ForbiddenPaths) -> None:
        self.file = file
        self._forbidden = forbidden
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._grants: tuple[Grant, ...] = ()
        self._notices: tuple[str, ...] = ()

    def current(self) -> tuple[Grant, ...]:
        """Longest path first, so that the closest grant decides."""
        self._refresh()
        return self._grants

    def notices(self) -> tuple[str, ...]:
        """What is wrong with the file, in sentences for the user; empty when nothing is."""
        self._refresh()
        return self._notices

    def _refresh(self) -> None:
        with self._lock:
            try:
                status = os.stat(self.file)
                seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            except FileNotFoundError:
                self._seen, self._grants, self._notices = None, (), ()
                return
            except OSError as error:
                self._keep(f"{self.file.name} can not be read ({error.strerror}); the last good grants stay in force.")
                return
            if seen != self._seen:
                self._seen = seen
                self._load(status.st_size)

    def _load(self, size: int) -> None:
        try:
            if size > _MAX_BYTES:
                raise ValueError(f"it is larger than {_MAX_BYTES} bytes")
            parsed = GrantsFile.model_validate(json.loads(self.file.read_text(encoding="utf-8")))
        except ValidationError as error:
            where, reason = first_problem(error, "the file")
            self._keep(f"{self.file.name} is not valid ({where}: {reason}); the last good grants stay in force.")
        except (OSError, ValueError, RecursionError) as error:
            self._keep(f"{self.file.name} can not be used ({error}); the last good grants stay in force.")
        else:
            self._accept(parsed)

    def _accept(self, parsed: GrantsFile) -> None:
        grants: list[Grant] = []
        notices: list[str] = []
        for entry in parsed.grants:
            path = Path(os.path.normpath(Path(entry.path).expanduser()))
            real = Path(os.path.realpath(path))
            if not path.is_absolute():
                notices.append(f"The grant {entry.path} is ignored: its path is not absolute.")
            elif self._forbidden.covers(path) or self._forbidden.covers(real):
                notices.append(f"The grant {entry.path} is ignored: it is a protected place.")
            else:
                grants.append(Grant(path, real, entry.permission, entry.reason))
        self._grants = tuple(sorted(grants, key=lambda grant: len(grant.path.parts), reverse=True))
        self._notices = tuple(notices)
        for notice in notices:
            _log.warning("%s", notice)

    def _keep(self, notice: str) -> None:
        if self._notices != (notice,):
            _log.warning("%s", notice)
        self._notices = (notice,)


Need = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class AllowedRoot:
    """A folder (or one granted file) that may be used, by its real path. `dotless`: it holds the user's whole home, of
    which nobody means the hidden files: keys, settings and what programs keep for themselves."""

    path: Path
    writable: bool
    workspace: bool
    dotless: bool = False


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A place below a root. Only its names are known: what is there is found out while walking, without links."""

    root: AllowedRoot
    names: tuple[str, ...]

    @property
    def path(self) -> Path:
        return self.root.path.joinpath(*self.names)

    @property
    def shown(self) -> str:
        """The path as shown: relative to the workspace, or absolute."""
        return "/".join(self.names) or "." if self.root.workspace else str(self.path)

    @property
    def name(self) -> str:
        return self.path.name

    def child(self, name: str) -> ResolvedPath:
        return ResolvedPath(self.root, (*self.names, name))


class PathResolver:
    """Decides which paths may be used."""

    def __init__(self, config: FilesConfig) -> None:
        self._user_home = config.user_home
        self._written = config.workspace
        self.forbidden = config.forbidden()
        self.grants = Grants(config.grants_file, self.forbidden)
        self.workspace = AllowedRoot(Path(os.path.realpath(config.workspace)), writable=True, workspace=True)
        config.refuse_bad_workspace()

    def resolve(self, path: str, need: Need, field: str = "path") -> ResolvedPath:
        """The resolved path, or NotAllowed with the reason."""
        spot = self.try_resolve(path, field)
        if isinstance(spot, NotAllowed):
            raise spot
        if need == "write" and not spot.root.writable:
            raise NotAllowed(
                f"{spot.shown} is granted for reading only.",
                hint="filer_request_grant with permission read-write tells the user what to change.",
                field=field,
            )
        return spot

    def try_resolve(self, path: str, field: str = "path") -> ResolvedPath | NotAllowed:
        """The same, with the refusal as an answer. Only an invalid path raises."""
        if not path.strip():
            raise InvalidArguments("The path is empty.", field=field)
        absolute, names = split_path(self._expand(path), field)
        if not absolute:
            return self._allowed(ResolvedPath(self.workspace, names), field)
        full = Path("/", *names)
        for written in (self._written, self.workspace.path):
            inside = names_below(full, written)
            if inside is not None:
                return self._allowed(ResolvedPath(self.workspace, inside), field)
        if self.forbidden.covers(full):
            return _forbidden_error(str(full), field)
        for grant in self.grants.current():
            for written in (grant.path, grant.real):
                inside = names_below(full, written)
                if inside is not None:
                    return self._allowed(ResolvedPath(self.root_of(grant), inside), field)
        return NotAllowed(
            f"{full} is outside the workspace and not granted.",
            hint="Use a path in the workspace, or filer_request_grant to learn what the user has to allow.",
            field=field,
        )

    def root_of(self, grant: Grant) -> AllowedRoot:
        homes = (self._user_home, Path(os.path.realpath(self._user_home)))
        dotless = any(fold_path(home)[: len(grant.real.parts)] == fold_path(grant.real) for home in homes)
        return AllowedRoot(grant.real, grant.permission == "read-write", workspace=False, dotless=dotless)

    def to_absolute(self, path: str) -> str:
        """An absolute path as it would stand in a grant."""
        return str(Path("/", *split_path(self._expand(path))[1]))

    def can_be_granted(self, path: str) -> bool:
        """Whether the user could open this path: it is absolute, and not in a protected place by any name."""
        absolute, names = split_path(self._expand(path))
        full = Path("/", *names)
        return absolute and not any(self.forbidden.covers(place) for place in (full, Path(os.path.realpath(full))))

    def forbids(self, spot: ResolvedPath) -> bool:
        """Whether a spot is a forbidden place. The workspace may lie inside one (the home), and is then exempt."""
        if spot.root.dotless and any(name.startswith(".") for name in spot.names):
            return True
        if not spot.root.workspace:
            return self.forbidden.covers(spot.path)
        steps = range(1, len(spot.names) + 1)
        return any(self.forbidden.is_place(spot.root.path.joinpath(*spot.names[:count])) for count in steps)

    def holds_roots(self, spot: ResolvedPath) -> bool:
        """Whether moving this spot would move a forbidden place, the workspace or a granted folder with it."""
        folded = fold_path(spot.path)
        roots = [self.workspace.path, *(grant.real for grant in self.grants.current())]
        # What is hidden in a folder would no longer be so under another root.
        return (
            spot.root.dotless
            or self.forbidden.below(spot.path)
            or any(fold_path(root)[: len(folded)] == folded for root in roots)
        )

    def _allowed(self, spot: ResolvedPath, field: str) -> ResolvedPath | NotAllowed:
        return _forbidden_error(spot.shown, field) if self.forbids(spot) else spot

    def _expand(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            return f"{self._user_home}{path[1:]}"
        return path


def _forbidden_error(shown: str, field: str) -> NotAllowed:
    return NotAllowed(
        f"{shown} is in a protected place (keys, settings, the system or Annabelle's own data).",
        hint="A grant of the whole home opens no hidden file, and none opens keys or the system.",
        field=field,
    )


WORKSPACE_FOLDERS = (
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
RESULTS = "temp/results"
"""Where the rest of a result that was too long to show is kept for some days."""
SCRIPTS = ("Code", "bash")
"""The one folder in which shell scripts may be made."""

PART_PREFIX = ".part-"
"""Begins the name of a file that is still being written."""
