"""Allowed import and export locations: the owner's export folder and the workspace. Follows no links (I-30)."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from annabelle.core.errors import InvalidArguments, NotAllowed, NotFound, StorageTrouble, TooLarge
from annabelle.core.messages import OWNER
from annabelle.servers.memory.config import MemoryConfig

if TYPE_CHECKING:
    from annabelle.store.memory.owner import Owner


MAX_FILE_BYTES = 200_000_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def folder_name(name: str) -> str:
    """Encode a user or agent id as a folder name."""
    written = quote(name, safe="@ +")
    return f"%2E{written[1:]}" if written.startswith(".") else written


def export_folder(config: MemoryConfig, owner: Owner) -> Path:
    return _user_export_folder(config, owner.user_id) / folder_name(owner.agent_id)


def _user_export_folder(config: MemoryConfig, user_id: str) -> Path:
    return config.export_folder if user_id == OWNER else config.export_folder / folder_name(user_id)


@dataclass(frozen=True, slots=True)
class ImportLocation:
    """A file or folder that may be imported: names below a root, walked without following links."""

    root: Path
    names: tuple[str, ...]
    exported: bool
    """Whether only exports and people write there. Its subfolders may belong to other users."""

    @property
    def shown(self) -> str:
        return "/".join(self.names) or "."


def find_locations(config: MemoryConfig, owner: Owner, path: str, *, any_agent: bool) -> list[ImportLocation]:
    """What a path may mean, in the order to try. `any_agent` includes exports of the user's other agents."""
    if "\x00" in path or not path.strip():
        raise InvalidArguments("file_path is not a path.", field="file_path")
    wanted = Path(path.strip())
    if ".." in wanted.parts:
        raise NotAllowed("A path with .. in it is not followed.", field="file_path")
    own, exports = export_folder(config, owner), _user_export_folder(config, owner.user_id)
    if not wanted.is_absolute():
        there = [ImportLocation(own, wanted.parts, True)] if len(wanted.parts) <= 1 else []
        return [*there, ImportLocation(config.workspace, wanted.parts, False)]
    for root, exported in ((own, True), (config.workspace, False)):
        for spelling in (root, Path(os.path.realpath(root))):
            names = wanted.relative_to(spelling).parts if wanted.is_relative_to(spelling) else None
            if names is not None and not (exported and len(names) > 1):
                return [ImportLocation(root, names, exported)]
    if any_agent and wanted.is_relative_to(exports):
        agent, *names = wanted.relative_to(exports).parts or ("",)
        if agent and len(names) <= 1 and not (exports / agent).is_symlink():
            return [ImportLocation(exports / agent, tuple(names), True)]
    raise NotAllowed(
        f"{path[:200]} is neither in the export folder nor in the workspace.",
        hint=f"Put it into {own} or {config.workspace}.",
        field="file_path",
    )


def read_files(places: list[ImportLocation], pages: Iterable[str]) -> tuple[ImportLocation, list[tuple[str, bytes]]]:
    """Read the first existing place. Of a folder, read the named pages."""
    for place in places:
        try:
            return place, _read_location(place, tuple(pages))
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):
                raise NotAllowed(f"{place.shown} leads through a link, which is not followed.") from error
            raise StorageTrouble(f"{place.shown} can not be read: {error.strerror}.") from error
    raise NotFound(
        f"There is no file {places[0].shown}.", hint=f"Looked in {' and '.join(str(one.root) for one in places)}."
    )


def _read_location(place: ImportLocation, pages: tuple[str, ...]) -> list[tuple[str, bytes]]:
    with ExitStack() as opened:
        folder = _open(opened, os.path.realpath(place.root), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in place.names[:-1]:
            folder = _open(opened, name, _FOLDER, folder)
        last = _open(opened, place.names[-1] if place.names else ".", _FILE, folder)
        if not stat.S_ISDIR(os.fstat(last).st_mode):
            return [(place.names[-1], _read_descriptor(last, place.shown))]
        if place.exported and place.names:
            raise NotAllowed(f"{place.shown} is a folder within an export.", hint="Name the export's own folder.")
        found: list[tuple[str, bytes]] = []
        for name in pages:
            with suppress(FileNotFoundError):
                found.append((name, _read_descriptor(_open(opened, name, _FILE, last), name)))
    if not found:
        raise NotFound(f"There is nothing to import in {place.shown}.", hint=f"Looked for {', '.join(pages)}.")
    return found


def _open(opened: ExitStack, name: str, flags: int, folder: int | None = None) -> int:
    descriptor = os.open(name, flags, dir_fd=folder)
    opened.callback(os.close, descriptor)
    return descriptor


def _read_descriptor(descriptor: int, shown: str) -> bytes:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise NotAllowed(f"{shown} is not a file.", field="file_path")
    if status.st_size > MAX_FILE_BYTES:
        raise TooLarge(f"{shown} has {status.st_size} bytes; files up to {MAX_FILE_BYTES} are imported.")
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


def write_file(path: Path, pieces: Iterable[str]) -> None:
    """Write a file atomically, readable by its owner only."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):
            temporary.unlink()
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise StorageTrouble(
            f"{path} can not be written: {error.strerror}.", hint="Check the folder and the space on the disk."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
