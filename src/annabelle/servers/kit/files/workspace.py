"""The workspace for servers that read or keep files as part of other work."""

from __future__ import annotations

import contextlib
import os
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from annabelle.core.errors import NotAllowed, OperatorMistake, TooLarge
from annabelle.servers.kit.call import StopSign, in_thread
from annabelle.servers.kit.files.atomic_write import cut_chunks, iter_chunks, write_atomically_at
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.files.paths import SCRIPTS, WORKSPACE_FOLDERS, Need, PathResolver, ResolvedPath
from annabelle.servers.kit.files.walker import PathWalker, explain_os_error

_PROGRAMS = frozenset(
    {
        *(".exe", ".bat", ".cmd", ".com", ".scr", ".pif", ".msi", ".ps1", ".vbs", ".hta", ".lnk", ".reg"),  # Windows
        *(".command", ".desktop"),  # macOS and Linux
    }
)


def refuse_program(spot: ResolvedPath, source: ResolvedPath | None = None) -> None:
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


T = TypeVar("T")

MAX_READ_BYTES = 50_000_000
_UNFIT = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*\u200e\u200f\u202a-\u202e\u2066-\u2069]+')
_NAME_BYTES = 180
_TRIES = 1000
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
"""Names that are no files on Windows, whatever their ending."""


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """A file that was read: how to speak of it, and all its bytes."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that was written: how to speak of it, and its size."""

    path: str
    size: int


class Workspace:
    """Paths as the model writes them: relative ones are in the workspace, absolute ones need a grant."""

    def __init__(self, config: FilesConfig) -> None:
        self._places = PathResolver(config)

    @classmethod
    def from_environment(cls) -> Workspace:
        return cls(FilesConfig.from_environment())

    async def read(self, path: str, max_bytes: int = MAX_READ_BYTES, field: str = "path") -> WorkspaceFile:
        """The whole file; TooLarge past the limit, NotFound, NotAllowed or another sentence otherwise."""

        def read_file(walker: PathWalker, stop: StopSign) -> WorkspaceFile:
            spot = self._places.resolve(path, "read", field)
            with walker.open_parent(spot) as folder, walker.open_file(folder, spot) as (descriptor, status):
                if status.st_size > max_bytes:
                    raise TooLarge(
                        f"{spot.shown} has {status.st_size} bytes; at most {max_bytes} are read.", field=field
                    )
                data = bytearray()
                for chunk in iter_chunks(descriptor, stop):
                    data += chunk
                    if len(data) > max_bytes:
                        raise TooLarge(f"{spot.shown} grew past {max_bytes} bytes while it was read.", field=field)
                return WorkspaceFile(spot.shown, bytes(data))

        return await self._perform(path, read_file)

    async def keep(self, folder: str, name: str, data: bytes) -> KeptFile:
        """A new file in a folder of the workspace, under a name from outside. Nothing is replaced: a name that is
        taken gets a number."""
        wanted = clean_name(name)

        def write_new_file(walker: PathWalker, stop: StopSign) -> KeptFile:
            spot = write_numbered(walker, self._places.resolve(folder, "write"), wanted, data, stop)
            if spot is None:
                raise TooLarge(f"{folder} has too many files called {wanted}.")
            return KeptFile(spot.shown, len(data))

        return await self._perform(f"{folder}/{wanted}", write_new_file)

    async def write(self, path: str, data: bytes, *, replace: bool = False, field: str = "path") -> KeptFile:
        """A file at a path somebody chose; Conflict if there is one already and `replace` is not given."""

        def write_file(walker: PathWalker, stop: StopSign) -> KeptFile:
            spot = self._places.resolve(path, "write", field)
            refuse_program(spot)
            with walker.open_parent(spot, make=True) as folder:
                if not walker.is_absent(folder, spot):
                    with walker.open_file(folder, spot):
                        pass  # what is there must be a file of its own, not a link or a folder
                write_atomically_at(walker, folder, spot.name, cut_chunks(data, stop), replace=replace)
            return KeptFile(spot.shown, len(data))

        return await self._perform(path, write_file)

    async def folder(self, path: str, need: Need = "read", *, make: bool = False, field: str = "path") -> Path:
        """The real path of a folder that may be used; every name on the way was looked at, and none is a link. Whoever
        gets the path reaches all that is below it, so no protected place may be there."""

        def resolve_folder(walker: PathWalker, stop: StopSign) -> Path:
            spot = self._places.resolve(path, need, field)
            if spot.root.dotless or self._places.forbidden.below(spot.path):
                raise NotAllowed(
                    f"{spot.shown} has a protected place in it (keys, settings or Annabelle's own data).",
                    hint="Use a folder further down that is granted by itself, not with the whole home."
                    if spot.root.dotless
                    else "Use a folder further down.",
                    field=field,
                )
            with walker.open_folder(spot, make=make):
                return spot.path

        return await self._perform(path, resolve_folder)

    async def _perform(self, path: str, work: Callable[[PathWalker, StopSign], T]) -> T:
        return await in_thread(lambda stop: work_on_files(self._places, path, work, stop))


def work_on_files(places: PathResolver, about: str, work: Callable[[PathWalker, StopSign], T], stop: StopSign) -> T:
    """Do something in the workspace and the granted folders. `about` is what the caller wrote, for error messages."""
    try:
        make_workspace(places.workspace.path)
        return work(PathWalker(places), stop)
    except OSError as error:
        raise explain_os_error(error, about) from error


def write_numbered(
    walker: PathWalker, folder: ResolvedPath, name: str, data: bytes, stop: StopSign
) -> ResolvedPath | None:
    """Write a new file; a name that is taken gets a number. None if there are far too many of that name."""
    with walker.open_folder(folder, make=True) as held:
        for number in range(1, _TRIES):
            spot = folder.child(_numbered(name, number))
            refuse_program(spot)
            if walker.is_absent(held, spot):
                with contextlib.suppress(FileExistsError):  # somebody was faster: the next number
                    write_atomically_at(walker, held, spot.name, cut_chunks(data, stop))
                    return spot
    return None


def make_workspace(workspace: Path) -> None:
    """The workspace with its folders, if it is not there yet."""
    if workspace.is_dir():
        return
    try:
        for folder in WORKSPACE_FOLDERS:
            (workspace / folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorMistake(
            f"The workspace {workspace} can not be made: {error.strerror}.",
            hint="Fix its permissions or set WORKSPACE_PATH to a folder you own.",
        ) from error


def clean_name(name: str) -> str:
    """A name from outside (an attachment, a download) as a file name that every system takes and no reader misreads."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rsplit("/", 1)[-1]
    printable = "".join(char for char in last if unicodedata.category(char) not in ("Cc", "Cs", "Cn"))
    fit = _UNFIT.sub("_", printable).strip(" .")
    path = PurePosixPath(fit or "file")
    suffix = path.suffix if len(path.suffix) <= 12 else ""
    stem = fit.removesuffix(suffix) if suffix else fit
    cut = stem.encode()[: _NAME_BYTES - len(suffix.encode())].decode(errors="ignore").strip(" .")
    return f"{'_' if _DEVICES.fullmatch(cut.partition('.')[0].strip()) else ''}{cut or 'file'}{suffix}"


def _numbered(name: str, number: int) -> str:
    if number == 1:
        return name
    path = PurePosixPath(name)
    return f"{path.stem} ({number}){path.suffix}"
