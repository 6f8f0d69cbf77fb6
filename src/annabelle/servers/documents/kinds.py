"""Tells what a file is by what is in it; its name decides only between kinds of text."""

from __future__ import annotations

import codecs
import io
import re
import zipfile
from pathlib import PurePosixPath
from typing import Literal

Kind = Literal[
    "pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp", "rtf", "html", "eml", "csv", "markdown", "text", "image", "zip",
    "tar", "old_office", "binary",
]  # fmt: skip

_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"BM", b"II*\x00", b"MM\x00*")
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_INSIDE: tuple[tuple[str, Kind], ...] = (
    ("word/document.xml", "docx"),
    ("xl/workbook.xml", "xlsx"),
    ("ppt/presentation.xml", "pptx"),
)
_OPEN_DOCUMENT: dict[str, Kind] = {"text": "odt", "spreadsheet": "ods", "presentation": "odp"}
_ENDINGS: dict[str, Kind] = {
    ".csv": "csv", ".tsv": "csv", ".html": "html", ".htm": "html", ".xhtml": "html", ".eml": "eml", ".md": "markdown",
    ".markdown": "markdown",
}  # fmt: skip
_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PROBE = 8192


def kind_of(data: bytes, name: str) -> Kind:
    """What to read a file as."""
    start = data[:_PROBE]
    if b"%PDF-" in start[:1024]:
        return "pdf"
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _kind_of_zip(data)
    if start.startswith(_OLD_OFFICE):
        return "old_office"
    if start.startswith(_IMAGES) or (start[:4] == b"RIFF" and start[8:12] == b"WEBP"):
        return "image"
    if start.startswith(_PACKED) or data[257:262] == b"ustar":
        return "tar"
    if start.startswith(b"{\\rtf"):
        return "rtf"
    if not _is_text(start):
        return "binary"
    by_name = _ENDINGS.get(PurePosixPath(name).suffix.lower())
    return by_name or ("html" if _HTML.match(start) else "text")


def _kind_of_zip(data: bytes) -> Kind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            if "mimetype" in names and _is_small(archive.getinfo("mimetype")):
                said = archive.read("mimetype").decode("ascii", errors="replace")
                return _OPEN_DOCUMENT.get(said.strip().removeprefix("application/vnd.oasis.opendocument."), "zip")
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, EOFError):
        return "zip"
    for inside, kind in _INSIDE:
        if inside in names:
            return kind
    return "zip"


def _is_small(member: zipfile.ZipInfo) -> bool:
    """What it claims binds only these two ways of packing; the others unpack all they hold before anybody looks."""
    return member.file_size < 200 and member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def _is_text(start: bytes) -> bool:
    if start.startswith(_MARKS):
        return True
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\b\x1b" for byte in start)
    return b"\0" not in start and controls <= len(start) * 0.05
