"""Tools that create, change, move, copy and delete files."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import Conflict, InvalidArguments, NotAllowed, TooLarge
from annabelle.servers.filer.operations import FileOperations
from annabelle.servers.kit import Result, StopSign, tool
from annabelle.servers.kit.files.atomic_write import (
    cut_chunks,
    iter_chunks,
    make_stamp,
    rename_new,
    same_content,
    write_atomically_at,
)
from annabelle.servers.kit.files.paths import BACKUPS, TEMP, TRASH, ResolvedPath
from annabelle.servers.kit.files.walker import PathWalker, explain_os_error, not_a_file_error
from annabelle.servers.kit.files.workspace import refuse_program

MAX_TEXT_BYTES = 50_000_000

Path = Annotated[str, Field(description="Path in the workspace, or an absolute path in a granted folder")]
Content = Annotated[str, Field(description="The whole new text of the file")]


class FileWritten(Result):
    """What became of a file that was to be written."""

    path: str
    size: int
    outcome: str = Field(description="created, replaced or unchanged")
    backup: str | None = Field(default=None, description="Where the old text is kept for some days")

    def to_text(self) -> str:
        if self.outcome == "unchanged":
            return f"{self.path} already has exactly this content."
        kept = f" The old one is kept as {self.backup}; to undo, delete {self.path} and move it back."
        done = "Created" if self.outcome == "created" else "Wrote"
        return f"{done} {self.path} ({self.size} bytes).{kept if self.backup else ''}"


class FileWriteTools:
    def __init__(self, operations: FileOperations) -> None:
        self._operations = operations

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def create_file(
        self,
        path: Path,
        content: Content,
        overwrite: Annotated[
            bool, Field(description="Replace a file that is there; the old one is kept in temp/backups")
        ] = False,
    ) -> FileWritten:
        """Create a text file, with the folders it needs. Fails if a different file is already there, unless overwrite
        is true. Programs (.exe .bat .ps1) are refused, and .sh outside Code/bash/."""

        def create(walker: PathWalker, stop: StopSign) -> FileWritten:
            spot = self._operations.places.resolve(path, "write")
            refuse_program(spot)
            data = _encode_content(content)
            with walker.open_parent(spot, make=True) as folder:
                if walker.is_absent(folder, spot):
                    try:
                        write_atomically_at(walker, folder, spot.name, cut_chunks(data, stop))
                        return FileWritten(path=spot.shown, size=len(data), outcome="created")
                    except FileExistsError:
                        pass  # somebody else just created it: treat it like any existing file
                return self._replace_file(walker, folder, spot, data, stop, allowed=overwrite, keep=True)

        return await self._operations.perform("create_file", path, create)

    @tool(read_only=False, destructive=True, idempotent=True, open_world=False)
    async def update_file(
        self,
        path: Path,
        content: Content,
        create_backup: Annotated[bool, Field(description="Keep the old text in temp/backups, to undo this")] = True,
    ) -> FileWritten:
        """Replace the whole text of an existing file. The old text is kept as a backup unless create_backup is
        false."""

        def update(walker: PathWalker, stop: StopSign) -> FileWritten:
            spot = self._operations.places.resolve(path, "write")
            with walker.open_parent(spot) as folder:
                return self._replace_file(
                    walker, folder, spot, _encode_content(content), stop, allowed=True, keep=create_backup
                )

        return await self._operations.perform("update_file", path, update)

    def _replace_file(
        self,
        walker: PathWalker,
        folder: int,
        spot: ResolvedPath,
        data: bytes,
        stop: StopSign,
        *,
        allowed: bool,
        keep: bool,
    ) -> FileWritten:
        name, _ = walker.status(folder, spot)
        with walker.open_file(folder, spot) as (old, status):
            if status.st_size == len(data) and _has_content(old, data, stop):
                return FileWritten(path=spot.shown, size=len(data), outcome="unchanged")
            if not allowed:
                raise Conflict(
                    f"{spot.shown} already exists.", hint="Use update_file, or create_file with overwrite true."
                )
            backup = self._back_up(walker, spot, old, stop) if keep else None
        mode = stat.S_IMODE(status.st_mode) & 0o777
        write_atomically_at(walker, folder, name, cut_chunks(data, stop), replace=True, mode=mode)
        return FileWritten(path=spot.shown, size=len(data), outcome="replaced", backup=backup)

    def _back_up(self, walker: PathWalker, spot: ResolvedPath, old: int, stop: StopSign) -> str:
        backup = ResolvedPath(self._operations.places.workspace, (*BACKUPS.split("/"), make_stamp(), spot.name))
        os.lseek(old, 0, os.SEEK_SET)
        with walker.open_parent(backup, make=True) as folder:
            write_atomically_at(walker, folder, backup.name, iter_chunks(old, stop))
        return backup.shown


def _encode_content(content: str) -> bytes:
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArguments(
            f"The content has half a character at position {error.start}.", field="content"
        ) from error
    if len(data) > MAX_TEXT_BYTES:
        raise TooLarge(f"The content is {len(data)} bytes; a file may have {MAX_TEXT_BYTES}.", field="content")
    return data


def _has_content(descriptor: int, data: bytes, stop: StopSign) -> bool:
    position = 0
    for chunk in iter_chunks(descriptor, stop):
        if chunk != data[position : position + len(chunk)]:
            return False
        position += len(chunk)
    return position == len(data)


Source = Annotated[str, Field(description="Path of what is there now")]
Destination = Annotated[str, Field(description="Full new path, with the file's name; nothing may be there yet")]


class FileMoved(Result):
    """Where a file was and where it is."""

    source: str
    destination: str
    size: int | None = None
    outcome: str = Field(description="moved, copied or unchanged")

    def to_text(self) -> str:
        if self.source == self.destination:
            return f"{self.source} stays as it is: its old and its new place are the same."
        if self.outcome == "unchanged":
            return f"{self.destination} is already the same as {self.source}."
        return f"{self.outcome.capitalize()} {self.source} to {self.destination}."


class FileDeleted(Result):
    """What became of a deleted file."""

    path: str
    trash: str | None = Field(default=None, description="Where it is kept for some days; absent when it is gone")

    def to_text(self) -> str:
        kept = f" It is kept as {self.trash}; move it back to undo." if self.trash else " It is gone for good."
        return f"Deleted {self.path}.{kept}"


class FileMoveTools:
    def __init__(self, operations: FileOperations) -> None:
        self._operations = operations

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def delete_file(
        self, path: Annotated[str, Field(description="Path of the file to delete; folders are not deleted")]
    ) -> FileDeleted:
        """Delete a file. It is moved to temp/trash of the workspace and kept there for some days; deleting it from
        there removes it for good."""

        def delete(walker: PathWalker, stop: StopSign) -> FileDeleted:
            spot = self._operations.places.resolve(path, "write")
            with walker.open_parent(spot) as folder:
                name, status = walker.status(folder, spot)
                if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
                    raise not_a_file_error(spot.shown, status.st_mode)
                if spot.root.workspace and spot.names[0] == TEMP:
                    os.unlink(name, dir_fd=folder)
                    return FileDeleted(path=spot.shown)
                trash = ResolvedPath(self._operations.places.workspace, (*TRASH.split("/"), make_stamp(), spot.name))
                with walker.open_parent(trash, make=True) as bin_folder:
                    try:
                        rename_new(folder, name, bin_folder, trash.name)
                    except OSError as error:
                        if error.errno != errno.EXDEV:
                            raise
                        self._move_across_disks(walker, (folder, name, spot), (bin_folder, trash), stop)
                return FileDeleted(path=spot.shown, trash=trash.shown)

        return await self._operations.perform("delete_file", path, delete)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def move_file(self, source: Source, destination: Destination) -> FileMoved:
        """Move or rename a file or a folder, within the workspace or between granted folders. Never overwrites."""

        def move(walker: PathWalker, stop: StopSign) -> FileMoved:
            old = self._operations.places.resolve(source, "write", "source")
            new = self._operations.places.resolve(destination, "write", "destination")
            with walker.open_parent(old) as folder:
                name, status = walker.status(folder, old)
                if stat.S_ISDIR(status.st_mode):
                    self._refuse_folder(old, new)
                else:
                    refuse_program(new, old)
                    with walker.open_file(folder, old):
                        pass  # only checks that it is a plain file, not a symlink, a pipe or a hard link
                    if old == new:
                        return FileMoved(source=old.shown, destination=new.shown, outcome="unchanged")
                with _errors_about(new), walker.open_parent(new, make=True) as target:
                    _refuse_taken(walker, target, new)
                    try:
                        rename_new(folder, name, target, new.name)
                    except OSError as error:
                        if error.errno != errno.EXDEV:
                            raise
                        self._move_across_disks(walker, (folder, name, old), (target, new), stop)
            return FileMoved(source=old.shown, destination=new.shown, outcome="moved")

        return await self._operations.perform("move_file", source, move, destination=destination)

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def copy_file(self, source: Source, destination: Destination) -> FileMoved:
        """Copy a file, within the workspace or between granted folders. Never overwrites a different file."""

        def copy(walker: PathWalker, stop: StopSign) -> FileMoved:
            old = self._operations.places.resolve(source, "read", "source")
            new = self._operations.places.resolve(destination, "write", "destination")
            refuse_program(new, old)
            with walker.open_parent(old) as folder, walker.open_file(folder, old) as (data, status):
                outcome = "copied"
                with _errors_about(new), walker.open_parent(new, make=True) as target:
                    if _is_same(walker, target, new, data, status.st_size, stop):
                        outcome = "unchanged"
                    else:
                        _refuse_taken(walker, target, new)
                        mode = stat.S_IMODE(status.st_mode) & 0o777
                        write_atomically_at(walker, target, new.name, iter_chunks(data, stop), mode=mode)
            return FileMoved(source=old.shown, destination=new.shown, size=status.st_size, outcome=outcome)

        return await self._operations.perform("copy_file", source, copy, destination=destination)

    def _refuse_folder(self, old: ResolvedPath, new: ResolvedPath) -> None:
        if not old.names or self._operations.places.holds_roots(old):
            raise NotAllowed(f"{old.shown} holds a protected or granted place and is not moved.", field="source")
        if new.path.is_relative_to(old.path):
            raise Conflict("A folder can not be moved into itself.", field="destination")

    def _move_across_disks(
        self, walker: PathWalker, old: tuple[int, str, ResolvedPath], new: tuple[int, ResolvedPath], stop: StopSign
    ) -> None:
        """Copy the whole file to the other disk, then remove it here."""
        folder, name, source = old
        target, destination = new
        with walker.open_file(folder, source) as (data, status):
            mode = stat.S_IMODE(status.st_mode) & 0o777
            write_atomically_at(walker, target, destination.name, iter_chunks(data, stop), mode=mode)
            os.unlink(name, dir_fd=folder)


def _refuse_taken(walker: PathWalker, folder: int, spot: ResolvedPath) -> None:
    try:
        _, status = walker.status(folder, spot)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        raise Conflict(
            f"{spot.shown} is a folder.", hint="Give the full new path, with the file's name.", field="destination"
        )
    raise Conflict(
        f"{spot.shown} already exists.", hint="Choose another name, or delete it first.", field="destination"
    )


def _is_same(walker: PathWalker, folder: int, spot: ResolvedPath, data: int, size: int, stop: StopSign) -> bool:
    """Whether the destination already has this content, as after a repeated call."""
    try:
        _, status = walker.status(folder, spot)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_size != size:
        return False
    with walker.open_file(folder, spot) as (there, _):
        same = same_content(data, there, stop)
    os.lseek(data, 0, os.SEEK_SET)
    return same


@contextlib.contextmanager
def _errors_about(spot: ResolvedPath) -> Generator[None]:
    """Report errors about this path instead of the source."""
    try:
        yield
    except OSError as error:
        raise explain_os_error(error, spot.shown) from error
