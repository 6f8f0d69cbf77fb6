"""What a file's bytes are: text in some encoding, or something to describe."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

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
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True, slots=True)
class Text:
    """Decoded text and how it was decoded."""

    text: str
    encoding: str


def is_binary(start: bytes) -> bool:
    """Whether the beginning of a file does not look like text in any encoding we read."""
    probe = start[:_PROBE_BYTES]
    if any(probe.startswith(mark) for mark, _ in _MARKS):
        return False
    if b"\0" in probe or media_type(probe) != "application/octet-stream":
        return True
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in probe)
    return controls > len(probe) * _MAX_CONTROL_SHARE


def media_type(start: bytes) -> str:
    return next((kind for magic, kind in _KINDS if start.startswith(magic)), "application/octet-stream")


def decode(data: bytes, *, whole: bool) -> Text:
    """UTF-8 (or what a byte order mark says), else Latin-1, which fits anything. A cut last character is left off."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
            return Text(decoder.decode(data, final=whole), encoding.removesuffix("-sig"))
    try:
        return Text(codecs.getincrementaldecoder("utf-8")().decode(data, final=whole), "utf-8")
    except UnicodeDecodeError:
        return Text(data.decode("latin-1"), "latin-1")
