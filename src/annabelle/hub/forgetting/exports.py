"""Takes a text out of what was exported for people to read: lines of Markdown, entries of JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

from annabelle.core.home import write_atomically
from annabelle.core.masking import pruned
from annabelle.core.needle import Needle
from annabelle.hub.forgetting.lines import replacements
from annabelle.hub.forgetting.marker import blank


def prune_export(path: Path, needle: Needle, *, apply: bool) -> int:
    """Rewrite an export without what holds the text; how many lines or files did."""
    blob = path.read_bytes()
    if not needle.within_bytes(blob):
        return 0
    if path.suffix == ".json":
        kept, count = _document(blob, needle), 1
    else:
        gone = {at for at, _line in replacements(blob, needle)}
        kept, count = _without(blob, gone), len(gone)
    if apply:
        _put(path, kept)
    return count


def _document(blob: bytes, needle: Needle) -> str:
    try:
        value: object = json.loads(blob)
    except (ValueError, RecursionError):
        return ""  # half a document is no use to anybody
    return json.dumps(pruned(needle, value), ensure_ascii=False, indent=2) + "\n"


def _without(blob: bytes, gone: set[int]) -> str:
    kept: list[bytes] = []
    at = 0
    for line in blob.split(b"\n"):
        if at not in gone:
            kept.append(line)
        at += len(line) + 1
    return b"\n".join(kept).decode(errors="replace")


def _put(path: Path, text: str) -> None:
    """A new file in the old one's place, of which nothing is left to be read."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        write_atomically(path, text, mode=os.fstat(descriptor).st_mode & 0o777)
        blank(descriptor)
    finally:
        os.close(descriptor)
