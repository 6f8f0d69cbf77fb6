"""The workspace for servers whose work is something else: read a file, keep one, find a folder."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from annabelle.core.errors import NotAllowed, OperatorMistake, TooLarge
from annabelle.servers.kit.blocking import StopSign, in_thread
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.files.descend import Walker
from annabelle.servers.kit.files.layout import FOLDERS
from annabelle.servers.kit.files.parts import CHUNK, chunks_of, write_whole
from annabelle.servers.kit.files.places import Need, Places, Spot
from annabelle.servers.kit.files.programs import refuse_program
from annabelle.servers.kit.files.trouble import explain

T = TypeVar("T")

MAX_READ_BYTES = 50_000_000
_UNFIT = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*\u200e\u200f\u202a-\u202e\u2066-\u2069]+')
_NAME_BYTES = 180
_TRIES = 1000
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
"""Names that are no files on Windows, whatever their ending."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file that was read: how to speak of it, and all its bytes."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class FileKept:
    """A file that was written: how to speak of it, and its size."""

    path: str
    size: int


class Workspace:
    """Paths as the model writes them: relative ones are in the workspace, absolute ones need a grant."""

    def __init__(self, config: FilesConfig) -> None:
        self._places = Places(config)

    @classmethod
    def from_environment(cls) -> Workspace:
        return cls(FilesConfig.from_environment())

    async def read(self, path: str, max_bytes: int = MAX_READ_BYTES, field: str = "path") -> FileContent:
        """The whole file; TooLarge past the limit, NotFound, NotAllowed or another sentence otherwise."""

        def work(walker: Walker, stop: StopSign) -> FileContent:
            spot = self._places.find(path, "read", field)
            with walker.folder_of(spot) as folder, walker.file(folder, spot) as (descriptor, status):
                if status.st_size > max_bytes:
                    raise TooLarge(
                        f"{spot.shown} has {status.st_size} bytes; at most {max_bytes} are read.", field=field
                    )
                data = bytearray()
                for chunk in chunks_of(descriptor, stop):
                    data += chunk
                    if len(data) > max_bytes:
                        raise TooLarge(f"{spot.shown} grew past {max_bytes} bytes while it was read.", field=field)
                return FileContent(spot.shown, bytes(data))

        return await self._perform(path, work)

    async def keep(self, folder: str, name: str, data: bytes) -> FileKept:
        """A new file in a folder of the workspace, under a name from outside. Nothing is replaced: a name that is
        taken gets a number."""
        wanted = clean_name(name)

        def work(walker: Walker, stop: StopSign) -> FileKept:
            home = self._places.find(folder, "write")
            with walker.folder(home, make=True) as held:
                for number in range(1, _TRIES):
                    spot = home.child(_numbered(wanted, number))
                    refuse_program(spot)
                    if walker.absent(held, spot) and self._written(walker, held, spot, _pieces(data, stop)):
                        return FileKept(spot.shown, len(data))
            raise TooLarge(f"{folder} has too many files called {wanted}.")

        return await self._perform(f"{folder}/{wanted}", work)

    async def write(self, path: str, data: bytes, *, replace: bool = False, field: str = "path") -> FileKept:
        """A file at a path somebody chose; Conflict if there is one already and `replace` is not given."""

        def work(walker: Walker, stop: StopSign) -> FileKept:
            spot = self._places.find(path, "write", field)
            refuse_program(spot)
            with walker.folder_of(spot, make=True) as folder:
                root, pieces = self._places.workspace, _pieces(data, stop)
                if not walker.absent(folder, spot):
                    with walker.file(folder, spot):  # what is there must be a file of its own, not a link or a folder
                        pass
                write_whole(walker, root, folder, spot.name, pieces, replace=replace, mode=0o644)
            return FileKept(spot.shown, len(data))

        return await self._perform(path, work)

    async def folder(self, path: str, need: Need = "read", *, make: bool = False, field: str = "path") -> Path:
        """The real path of a folder that may be used; every name on the way was looked at, and none is a link. Whoever
        gets the path reaches all that is below it, so no protected place may be there."""

        def work(walker: Walker, stop: StopSign) -> Path:
            spot = self._places.find(path, need, field)
            if spot.root.dotless or self._places.forbidden.below(spot.path):
                raise NotAllowed(
                    f"{spot.shown} has a protected place in it (keys, settings or Annabelle's own data).",
                    hint="Use a folder further down that is granted by itself, not with the whole home."
                    if spot.root.dotless
                    else "Use a folder further down.",
                    field=field,
                )
            with walker.folder(spot, make=make):
                return spot.path

        return await self._perform(path, work)

    def _written(self, walker: Walker, folder: int, spot: Spot, pieces: Iterable[bytes]) -> bool:
        try:
            write_whole(walker, self._places.workspace, folder, spot.name, pieces, replace=False, mode=0o644)
        except FileExistsError:
            return False  # somebody was faster: the next number
        return True

    async def _perform(self, path: str, work: Callable[[Walker, StopSign], T]) -> T:
        def inside(stop: StopSign) -> T:
            try:
                self._prepare()
                return work(Walker(self._places), stop)
            except OSError as error:
                raise explain(error, path) from error

        return await in_thread(inside)

    def _prepare(self) -> None:
        make_workspace(self._places.workspace.path)


def make_workspace(workspace: Path) -> None:
    """The workspace with its folders, if it is not there yet."""
    if workspace.is_dir():
        return
    try:
        for folder in FOLDERS:
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


def _pieces(data: bytes, stop: StopSign) -> Iterable[bytes]:
    for start in range(0, len(data), CHUNK):
        stop.check()
        yield data[start : start + CHUNK]
