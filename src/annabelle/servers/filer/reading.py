"""Tools that read files and list folders."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import Conflict, TooLarge
from annabelle.servers.filer.content import decode, is_binary, media_type
from annabelle.servers.filer.desk import Desk
from annabelle.servers.filer.survey import Entry, Survey
from annabelle.servers.kit import Result, StopSign, current_call, tool
from annabelle.servers.kit.files.descend import Walker
from annabelle.servers.kit.files.parts import chunks_of
from annabelle.servers.kit.files.places import Spot

MAX_TEXT_BYTES = 50_000_000
MAX_BINARY_BYTES = 10_000_000
SHOWN_TEXT_BYTES = 200_000
SHOWN_BINARY_BYTES = 200_000
MAX_LISTED = 1000


class FileContent(Result):
    """A file's content, or as much of it as one answer may hold."""

    path: str
    kind: Literal["text", "binary"]
    size: int
    content: str | None = Field(
        default=None, description="The text; base64 when binary; absent when too long for one answer"
    )
    encoding: str = Field(description="utf-8, latin-1, utf-16, or base64 for a binary file")
    truncated: bool = False
    media_type: str | None = None
    sha256: str | None = None
    notice: str | None = Field(default=None, description="What to know about the content above")

    def text(self) -> str:
        if self.kind == "text":
            return f"{self.content or ''}\n\n[{self.notice}]" if self.notice else self.content or ""
        return f"{self.path} is a binary file ({self.media_type}, {self.size} bytes, sha256 {self.sha256})."


class Listing(Result):
    """What is in a folder."""

    path: str
    entries: list[Entry]
    truncated: bool = False
    notice: str | None = None

    def text(self) -> str:
        lines = [entry.line() for entry in self.entries] or ["(empty)"]
        return "\n".join([f"{self.path}:", *lines, *([f"[{self.notice}]"] if self.notice else [])])


class Reading:
    """read_file and list_files."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def read_file(
        self, path: Annotated[str, Field(description="Path in the workspace, or an absolute path in a granted folder")]
    ) -> FileContent:
        """Read a file. A long text is cut with a notice; a binary file is described, and given as base64 if small."""

        def work(walker: Walker, stop: StopSign) -> FileContent:
            spot = self._desk.places.find(path, "read")
            with walker.folder_of(spot) as folder, walker.file(folder, spot) as (descriptor, status):
                start = _read(descriptor, SHOWN_TEXT_BYTES)
                if is_binary(start):
                    return _binary(spot, descriptor, status.st_size, stop)
                return _text(spot, start, status.st_size)

        return await self._desk.perform("read_file", path, work)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_files(
        self,
        path: Annotated[str, Field(description="Folder in the workspace, or an absolute path that is granted")] = ".",
        recursive: Annotated[bool, Field(description="Also what is in the folders inside")] = False,
    ) -> Listing:
        """List a folder: names, kinds, sizes and times. At most 1000 entries; a longer list is marked as truncated.
        A recursive list of the workspace leaves out temp/."""

        def begin(walker: Walker, stop: StopSign) -> Survey:
            spot = self._desk.places.find(path, "read")
            try:
                with walker.readable_folder(spot):
                    return Survey([spot], recursive=recursive)
            except NotADirectoryError as error:
                raise Conflict(f"{spot.shown} is not a folder.", hint="read_file reads a file.") from error

        survey = await self._desk.perform("list_files", path, begin)
        entries: list[Entry] = []
        call = current_call()
        while not survey.over and len(entries) <= MAX_LISTED:
            entries += await self._desk.perform("list_files", path, survey.step, audited=False)
            await call.progress(survey.seen, message=f"{survey.seen} entries seen")
        cut = len(entries) > MAX_LISTED or survey.limit is not None
        notice = f"Only the first {MAX_LISTED} entries are shown; list a folder inside, or use search_files."
        return Listing(
            path=survey.starts[0].shown,
            entries=entries[:MAX_LISTED],
            truncated=cut,
            notice=(survey.limit or notice) if cut else None,
        )


def _text(spot: Spot, start: bytes, size: int) -> FileContent:
    if size > MAX_TEXT_BYTES:
        raise TooLarge(
            f"{spot.shown} is {size} bytes; texts are read up to {MAX_TEXT_BYTES}.", hint="search_files finds lines."
        )
    whole = size <= len(start)
    text = decode(start, whole=whole)
    notices: list[str] = []
    if not whole:
        notices.append(f"Cut: the first {len(start)} of {size} bytes are shown.")
    if text.encoding == "latin-1":
        notices.append("Not valid UTF-8, so it was read as Latin-1; some characters may be wrong.")
    return FileContent(
        path=spot.shown,
        kind="text",
        size=size,
        content=text.text,
        encoding=text.encoding,
        truncated=not whole,
        notice=" ".join(notices) or None,
    )


def _binary(spot: Spot, descriptor: int, size: int, stop: StopSign) -> FileContent:
    if size > MAX_BINARY_BYTES:
        raise TooLarge(f"{spot.shown} is a binary file of {size} bytes; they are read up to {MAX_BINARY_BYTES}.")
    os.lseek(descriptor, 0, os.SEEK_SET)
    data = b"".join(chunks_of(descriptor, stop))
    small = len(data) <= SHOWN_BINARY_BYTES
    return FileContent(
        path=spot.shown,
        kind="binary",
        size=len(data),
        content=base64.b64encode(data).decode() if small else None,
        encoding="base64",
        truncated=not small,
        media_type=media_type(data),
        sha256=hashlib.sha256(data).hexdigest(),
        notice=None if small else f"Binary files above {SHOWN_BINARY_BYTES} bytes are described, not returned.",
    )


def _read(descriptor: int, count: int) -> bytes:
    pieces: list[bytes] = []
    while count > 0 and (piece := os.read(descriptor, count)):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)
