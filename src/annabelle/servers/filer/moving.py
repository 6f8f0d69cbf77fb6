"""Tools that move, copy and delete files."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import Conflict, NotAllowed
from annabelle.servers.filer.desk import Desk
from annabelle.servers.kit import Result, StopSign, tool
from annabelle.servers.kit.files.descend import Walker
from annabelle.servers.kit.files.layout import TEMP, TRASH
from annabelle.servers.kit.files.parts import chunks_of, same_content, stamp, write_whole
from annabelle.servers.kit.files.places import Spot
from annabelle.servers.kit.files.programs import refuse_program
from annabelle.servers.kit.files.rename import rename_new
from annabelle.servers.kit.files.trouble import explain, not_a_file

Source = Annotated[str, Field(description="Path of what is there now")]
Destination = Annotated[str, Field(description="Full new path, with the file's name; nothing may be there yet")]


class FileMoved(Result):
    """Where a file was and where it is."""

    source: str
    destination: str
    size: int | None = None
    outcome: str = Field(description="moved, copied or unchanged")

    def text(self) -> str:
        if self.outcome == "unchanged":
            return f"{self.destination} is already the same as {self.source}."
        return f"{self.outcome.capitalize()} {self.source} to {self.destination}."


class FileDeleted(Result):
    """What became of a deleted file."""

    path: str
    trash: str | None = Field(default=None, description="Where it is kept for some days; absent when it is gone")

    def text(self) -> str:
        kept = f" It is kept as {self.trash}; move it back to undo." if self.trash else " It is gone for good."
        return f"Deleted {self.path}.{kept}"


class Moving:
    """move_file, copy_file and delete_file."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def delete_file(
        self, path: Annotated[str, Field(description="Path of the file to delete; folders are not deleted")]
    ) -> FileDeleted:
        """Delete a file. It is moved to temp/trash of the workspace and kept there for some days; deleting it from
        there removes it for good."""

        def work(walker: Walker, stop: StopSign) -> FileDeleted:
            spot = self._desk.places.find(path, "write")
            with walker.folder_of(spot) as folder:
                name, status = walker.status(folder, spot)
                if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
                    raise not_a_file(spot.shown, status.st_mode)
                if spot.root.workspace and spot.names[0] == TEMP:
                    os.unlink(name, dir_fd=folder)
                    return FileDeleted(path=spot.shown)
                trash = Spot(self._desk.places.workspace, (*TRASH.split("/"), stamp(), spot.name))
                with walker.folder_of(trash, make=True) as bin_folder:
                    try:
                        rename_new(folder, name, bin_folder, trash.name)
                    except OSError as error:
                        if error.errno != errno.EXDEV:
                            raise
                        self._carry(walker, (folder, name, spot), (bin_folder, trash), stop)
                return FileDeleted(path=spot.shown, trash=trash.shown)

        return await self._desk.perform("delete_file", path, work)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def move_file(self, source: Source, destination: Destination) -> FileMoved:
        """Move or rename a file or a folder, within the workspace or between granted folders. Never overwrites."""

        def work(walker: Walker, stop: StopSign) -> FileMoved:
            old = self._desk.places.find(source, "write", "source")
            new = self._desk.places.find(destination, "write", "destination")
            with walker.folder_of(old) as folder:
                name, status = walker.status(folder, old)
                if stat.S_ISDIR(status.st_mode):
                    self._refuse_folder(old, new)
                else:
                    refuse_program(new, old)
                    with walker.file(folder, old):
                        pass  # a file of its own, and not a link, a pipe or a second name
                with _speaking_of(new), walker.folder_of(new, make=True) as target:
                    _refuse_taken(walker, target, new)
                    try:
                        rename_new(folder, name, target, new.name)
                    except OSError as error:
                        if error.errno != errno.EXDEV:
                            raise
                        self._carry(walker, (folder, name, old), (target, new), stop)
            return FileMoved(source=old.shown, destination=new.shown, outcome="moved")

        return await self._desk.perform("move_file", source, work, destination=destination)

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def copy_file(self, source: Source, destination: Destination) -> FileMoved:
        """Copy a file, within the workspace or between granted folders. Never overwrites a different file."""

        def work(walker: Walker, stop: StopSign) -> FileMoved:
            old = self._desk.places.find(source, "read", "source")
            new = self._desk.places.find(destination, "write", "destination")
            refuse_program(new, old)
            with walker.folder_of(old) as folder, walker.file(folder, old) as (data, status):
                outcome = "copied"
                with _speaking_of(new), walker.folder_of(new, make=True) as target:
                    if _is_same(walker, target, new, data, status.st_size, stop):
                        outcome = "unchanged"
                    else:
                        _refuse_taken(walker, target, new)
                        workspace, mode = self._desk.places.workspace, stat.S_IMODE(status.st_mode) & 0o777
                        pieces = chunks_of(data, stop)
                        write_whole(walker, workspace, target, new.name, pieces, replace=False, mode=mode)
            return FileMoved(source=old.shown, destination=new.shown, size=status.st_size, outcome=outcome)

        return await self._desk.perform("copy_file", source, work, destination=destination)

    def _refuse_folder(self, old: Spot, new: Spot) -> None:
        if not old.names or self._desk.places.holds_roots(old):
            raise NotAllowed(f"{old.shown} holds a protected or granted place and is not moved.", field="source")
        if new.path.is_relative_to(old.path):
            raise Conflict("A folder can not be moved into itself.", field="destination")

    def _carry(self, walker: Walker, old: tuple[int, str, Spot], new: tuple[int, Spot], stop: StopSign) -> None:
        """To another disk: copied whole first, removed here after."""
        folder, name, source = old
        target, destination = new
        with walker.file(folder, source) as (data, status):
            mode = stat.S_IMODE(status.st_mode) & 0o777
            workspace = self._desk.places.workspace
            write_whole(walker, workspace, target, destination.name, chunks_of(data, stop), replace=False, mode=mode)
            os.unlink(name, dir_fd=folder)


def _refuse_taken(walker: Walker, folder: int, spot: Spot) -> None:
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


def _is_same(walker: Walker, folder: int, spot: Spot, data: int, size: int, stop: StopSign) -> bool:
    """Whether the destination is already what it should become, as after a repeated call."""
    try:
        _, status = walker.status(folder, spot)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_size != size:
        return False
    with walker.file(folder, spot) as (there, _):
        same = same_content(data, there, stop)
    os.lseek(data, 0, os.SEEK_SET)
    return same


@contextlib.contextmanager
def _speaking_of(spot: Spot) -> Generator[None]:
    """Errors in here are about this spot, not about the source."""
    try:
        yield
    except OSError as error:
        raise explain(error, spot.shown) from error
