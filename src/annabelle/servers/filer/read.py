"""Tools that read files and list folders."""

from __future__ import annotations

import base64
import codecs
import hashlib
import os
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import Conflict, TooLarge
from annabelle.core.result_text import for_model
from annabelle.servers.filer.folder_walk import FolderEntry, FolderWalk
from annabelle.servers.filer.operations import FileOperations
from annabelle.servers.kit import Result, StopSign, current_call, tool
from annabelle.servers.kit.files.atomic_write import iter_chunks
from annabelle.servers.kit.files.paths import ResolvedPath
from annabelle.servers.kit.files.walker import PathWalker

_PROBE_BYTES = 8192
_TEXT_CONTROLS = frozenset(b"\t\n\r\f\b\x1b")
_MAX_CONTROL_SHARE = 0.05

_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x7fELF", "application/x-elf"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"OggS", "application/ogg"),
    (b"ID3", "audio/mpeg"),
)
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True, slots=True)
class DecodedText:
    text: str
    encoding: str


def is_binary(start: bytes) -> bool:
    """Whether the start of a file does not look like text in a supported encoding."""
    probe = start[:_PROBE_BYTES]
    if any(probe.startswith(mark) for mark, _ in _BYTE_ORDER_MARKS):
        return False
    if b"\0" in probe or detect_media_type(probe) != "application/octet-stream":
        return True
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in probe)
    return controls > len(probe) * _MAX_CONTROL_SHARE


def detect_media_type(start: bytes) -> str:
    return next((kind for magic, kind in _KINDS if start.startswith(magic)), "application/octet-stream")


def decode_text(data: bytes, *, whole: bool) -> DecodedText:
    """Decode by byte order mark or as UTF-8, else as Latin-1. An incomplete last character is dropped."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
            return DecodedText(decoder.decode(data, final=whole), encoding.removesuffix("-sig"))
    try:
        return DecodedText(codecs.getincrementaldecoder("utf-8")().decode(data, final=whole), "utf-8")
    except UnicodeDecodeError:
        return DecodedText(data.decode("latin-1"), "latin-1")


MAX_TEXT_BYTES = 50_000_000
MAX_BINARY_BYTES = 10_000_000
SHOWN_TEXT_BYTES = 200_000
SHOWN_BINARY_BYTES = 200_000
MAX_LISTED = 1000


class ReadFileResult(Result):
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

    def to_text(self) -> str:
        if self.kind == "text" and not self.size:
            return f"{self.path} is empty."
        if self.kind == "text":
            return f"{self.content or ''}\n\n[{self.notice}]" if self.notice else self.content or ""
        return f"{self.path} is a binary file ({self.media_type}, {self.size} bytes, sha256 {self.sha256})."


class FolderListing(Result):
    """What is in a folder."""

    path: str
    entries: list[FolderEntry]
    truncated: bool = False
    notice: str | None = None

    def to_text(self) -> str:
        lines = [entry.to_text() for entry in self.entries] or [for_model("(empty)", "There are no files here yet.")]
        head = for_model(f"{self.path}:", "" if self.path == "." or not self.entries else f"{self.path}:")
        return "\n".join([*filter(None, [head]), *lines, *([f"[{self.notice}]"] if self.notice else [])])


class FileReadTools:
    def __init__(self, operations: FileOperations) -> None:
        self._operations = operations

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def read_file(
        self, path: Annotated[str, Field(description="Path in the workspace, or an absolute path in a granted folder")]
    ) -> ReadFileResult:
        """Read a file. A long text is cut with a notice; a binary file is described, and given as base64 if small."""

        def read(walker: PathWalker, stop: StopSign) -> ReadFileResult:
            spot = self._operations.places.resolve(path, "read")
            with walker.open_parent(spot) as folder, walker.open_file(folder, spot) as (descriptor, status):
                start = _read_bytes(descriptor, SHOWN_TEXT_BYTES)
                if is_binary(start):
                    return _make_binary_result(spot, descriptor, status.st_size, stop)
                return _make_text_result(spot, start, status.st_size)

        return await self._operations.perform("read_file", path, read)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_files(
        self,
        path: Annotated[str, Field(description="Folder in the workspace, or an absolute path that is granted")] = ".",
        recursive: Annotated[bool, Field(description="Also what is in the folders inside")] = False,
    ) -> FolderListing:
        """List a folder: names, kinds, sizes and times. At most 1000 entries; a longer list is marked as truncated.
        A recursive list of the workspace leaves out temp/."""

        def begin(walker: PathWalker, stop: StopSign) -> FolderWalk:
            spot = self._operations.places.resolve(path, "read")
            try:
                with walker.open_readable_folder(spot):
                    return FolderWalk([spot], recursive=recursive)
            except NotADirectoryError as error:
                raise Conflict(f"{spot.shown} is not a folder.", hint="read_file reads a file.") from error

        walk = await self._operations.perform("list_files", path, begin)
        entries: list[FolderEntry] = []
        call = current_call()
        while not walk.finished and len(entries) <= MAX_LISTED:
            entries += await self._operations.perform("list_files", path, walk.step, audited=False)
            await call.progress(walk.seen, message=f"{walk.seen} entries seen")
        cut = len(entries) > MAX_LISTED or walk.limit is not None
        notice = f"Only the first {MAX_LISTED} entries are shown; list a folder inside, or use search_files."
        return FolderListing(
            path=walk.starts[0].shown,
            entries=entries[:MAX_LISTED],
            truncated=cut,
            notice=(walk.limit or notice) if cut else None,
        )


def _make_text_result(spot: ResolvedPath, start: bytes, size: int) -> ReadFileResult:
    if size > MAX_TEXT_BYTES:
        raise TooLarge(
            f"{spot.shown} is {size} bytes; texts are read up to {MAX_TEXT_BYTES}.", hint="search_files finds lines."
        )
    whole = size <= len(start)
    text = decode_text(start, whole=whole)
    notices: list[str] = []
    if not whole:
        notices.append(f"Cut: the first {len(start)} of {size} bytes are shown.")
    if text.encoding == "latin-1":
        notices.append("Not valid UTF-8, so it was read as Latin-1; some characters may be wrong.")
    return ReadFileResult(
        path=spot.shown,
        kind="text",
        size=size,
        content=text.text,
        encoding=text.encoding,
        truncated=not whole,
        notice=" ".join(notices) or None,
    )


def _make_binary_result(spot: ResolvedPath, descriptor: int, size: int, stop: StopSign) -> ReadFileResult:
    if size > MAX_BINARY_BYTES:
        raise TooLarge(f"{spot.shown} is a binary file of {size} bytes; they are read up to {MAX_BINARY_BYTES}.")
    os.lseek(descriptor, 0, os.SEEK_SET)
    data = b"".join(iter_chunks(descriptor, stop))
    small = len(data) <= SHOWN_BINARY_BYTES
    return ReadFileResult(
        path=spot.shown,
        kind="binary",
        size=len(data),
        content=base64.b64encode(data).decode() if small else None,
        encoding="base64",
        truncated=not small,
        media_type=detect_media_type(data),
        sha256=hashlib.sha256(data).hexdigest(),
        notice=None if small else f"Binary files above {SHOWN_BINARY_BYTES} bytes are described, not returned.",
    )


def _read_bytes(descriptor: int, count: int) -> bytes:
    pieces: list[bytes] = []
    while count > 0 and (piece := os.read(descriptor, count)):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)
