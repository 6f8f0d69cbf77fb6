"""What kind of thing an answer is: by its content type, and by its first bytes where that says nothing."""

from __future__ import annotations

from typing import Literal

Kind = Literal["html", "pdf", "text", "other"]

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = (
    "application/json",
    "application/ld+json",
    "application/xml",
    "application/javascript",
    "application/x-ndjson",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/sql",
    "application/rtf",
)
_SAYS_NOTHING = ("", "application/octet-stream", "binary/octet-stream", "application/force-download", "text/plain")
_HTML_BEGINS = (b"<!doctype html", b"<html", b"<head", b"<body")


def kind_of(content_type: str, data: bytes) -> Kind:
    if content_type in _HTML:
        return "html"
    if content_type == "application/pdf" or (content_type in _SAYS_NOTHING and data.startswith(b"%PDF-")):
        return "pdf"
    begins = data[:1000].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if content_type in _SAYS_NOTHING[:-1] and begins.startswith(_HTML_BEGINS):
        return "html"
    if content_type in _SAYS_NOTHING:
        wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        return "other" if b"\x00" in data[:4000] and not wide else "text"
    if content_type.startswith("text/") or content_type in _TEXT or content_type.endswith(("+json", "+xml")):
        return "text"
    return "other"


def ending_of(kind: Kind, content_type: str) -> str:
    """How the name of a file with its text ends."""
    if kind != "text":
        return "md"
    for word in ("json", "xml", "csv", "yaml"):
        if word in content_type:
            return word
    return "txt"
