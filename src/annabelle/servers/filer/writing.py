"""Tools that make and change files."""

from __future__ import annotations

import os
import stat
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import Conflict, InvalidArguments, TooLarge
from annabelle.servers.filer.desk import Desk
from annabelle.servers.kit import Result, StopSign, tool
from annabelle.servers.kit.files.descend import Walker
from annabelle.servers.kit.files.layout import BACKUPS
from annabelle.servers.kit.files.parts import CHUNK, chunks_of, stamp, write_whole
from annabelle.servers.kit.files.places import Spot
from annabelle.servers.kit.files.programs import refuse_program

MAX_TEXT_BYTES = 50_000_000

Path = Annotated[str, Field(description="Path in the workspace, or an absolute path in a granted folder")]
Content = Annotated[str, Field(description="The whole new text of the file")]


class FileWritten(Result):
    """What became of a file that was to be written."""

    path: str
    size: int
    outcome: str = Field(description="created, replaced or unchanged")
    backup: str | None = Field(default=None, description="Where the old text is kept for some days")

    def text(self) -> str:
        if self.outcome == "unchanged":
            return f"{self.path} already has exactly this content."
        kept = f" The old one is kept as {self.backup}; to undo, delete {self.path} and move it back."
        done = "Created" if self.outcome == "created" else "Wrote"
        return f"{done} {self.path} ({self.size} bytes).{kept if self.backup else ''}"


class Writing:
    """create_file and update_file."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

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

        def work(walker: Walker, stop: StopSign) -> FileWritten:
            spot = self._desk.places.find(path, "write")
            refuse_program(spot)
            data = _encode(content)
            with walker.folder_of(spot, make=True) as folder:
                if walker.absent(folder, spot):
                    try:
                        self._write(walker, folder, spot.name, data, replace=False, mode=0o644)
                        return FileWritten(path=spot.shown, size=len(data), outcome="created")
                    except FileExistsError:
                        pass  # somebody was faster: it is treated like any file that is already there
                return self._replace(walker, folder, spot, data, stop, allowed=overwrite, keep=True)

        return await self._desk.perform("create_file", path, work)

    @tool(read_only=False, destructive=True, idempotent=True, open_world=False)
    async def update_file(
        self,
        path: Path,
        content: Content,
        create_backup: Annotated[bool, Field(description="Keep the old text in temp/backups, to undo this")] = True,
    ) -> FileWritten:
        """Replace the whole text of an existing file. The old text is kept as a backup unless create_backup is
        false."""

        def work(walker: Walker, stop: StopSign) -> FileWritten:
            spot = self._desk.places.find(path, "write")
            with walker.folder_of(spot) as folder:
                return self._replace(walker, folder, spot, _encode(content), stop, allowed=True, keep=create_backup)

        return await self._desk.perform("update_file", path, work)

    def _replace(
        self, walker: Walker, folder: int, spot: Spot, data: bytes, stop: StopSign, *, allowed: bool, keep: bool
    ) -> FileWritten:
        name, _ = walker.status(folder, spot)
        with walker.file(folder, spot) as (old, status):
            if status.st_size == len(data) and _holds(old, data, stop):
                return FileWritten(path=spot.shown, size=len(data), outcome="unchanged")
            if not allowed:
                raise Conflict(
                    f"{spot.shown} already exists.", hint="Use update_file, or create_file with overwrite true."
                )
            backup = self._keep(walker, spot, old, stop) if keep else None
        self._write(walker, folder, name, data, replace=True, mode=stat.S_IMODE(status.st_mode) & 0o777)
        return FileWritten(path=spot.shown, size=len(data), outcome="replaced", backup=backup)

    def _keep(self, walker: Walker, spot: Spot, old: int, stop: StopSign) -> str:
        backup = Spot(self._desk.places.workspace, (*BACKUPS.split("/"), stamp(), spot.name))
        os.lseek(old, 0, os.SEEK_SET)
        with walker.folder_of(backup, make=True) as folder:
            workspace = self._desk.places.workspace
            write_whole(walker, workspace, folder, backup.name, chunks_of(old, stop), replace=False, mode=0o644)
        return backup.shown

    def _write(self, walker: Walker, folder: int, name: str, data: bytes, *, replace: bool, mode: int) -> None:
        pieces = (data[start : start + CHUNK] for start in range(0, len(data), CHUNK))
        write_whole(walker, self._desk.places.workspace, folder, name, pieces, replace=replace, mode=mode)


def _encode(content: str) -> bytes:
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArguments(
            f"The content has half a character at position {error.start}.", field="content"
        ) from error
    if len(data) > MAX_TEXT_BYTES:
        raise TooLarge(f"The content is {len(data)} bytes; a file may have {MAX_TEXT_BYTES}.", field="content")
    return data


def _holds(descriptor: int, data: bytes, stop: StopSign) -> bool:
    position = 0
    for chunk in chunks_of(descriptor, stop):
        if chunk != data[position : position + len(chunk)]:
            return False
        position += len(chunk)
    return position == len(data)
