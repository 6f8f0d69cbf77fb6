"""Takes a text out of files of lines, in place and without changing their length.

Processes go on appending to these files meanwhile; a file that is not replaced and does not shrink is theirs still.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from annabelle.core.masking import MASK, masked
from annabelle.core.needle import Needle, folds

Line = tuple[int, bytes]
"""Where a line begins in its file, and its bytes without the end of line."""


def mask_lines(path: Path, needle: Needle, *, apply: bool) -> int:
    """Overwrite the lines that hold the text; how many did."""
    descriptor = os.open(path, os.O_RDWR if apply else os.O_RDONLY)
    try:
        blob = b"".join(iter(lambda: os.read(descriptor, 4_000_000), b""))
        found = list(replacements(blob, needle))
        for at, line in found if apply else []:
            os.pwrite(descriptor, line, at)
        if apply and found:
            os.fsync(descriptor)
        return len(found)
    finally:
        os.close(descriptor)


def replacements(blob: bytes, needle: Needle) -> Iterator[Line]:
    """The lines that must change, each with what to write over it."""
    if not needle.within_bytes(blob):
        return
    plain: list[Line] = []
    for at, line in _lines(blob):
        record = _record(line)
        if record is None:
            plain.append((at, line))
        elif needle.within(line.decode(errors="replace")):
            new = _masked_record(line, record, needle)
            if new is not None:
                yield at, new
    for at, line in _holding(plain, needle):
        new = MASK.encode()[: len(line)].ljust(len(line))
        if new != line:  # the mask itself may read like the text
            yield at, new


def _lines(blob: bytes) -> Iterator[Line]:
    at = 0
    for line in blob.split(b"\n"):
        if line.strip():
            yield at, line
        at += len(line) + 1


def _record(line: bytes) -> dict[str, object] | list[object] | None:
    if not line.lstrip().startswith((b"{", b"[")):
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _masked_record(line: bytes, record: dict[str, object] | list[object], needle: Needle) -> bytes | None:
    """The record without the text, filled up with blanks; None when only what holds it together reads like the text."""
    for mask in (MASK, ""):
        new = masked(needle, record, mask)
        if new == record:
            return None
        written = json.dumps(new, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        if len(written) <= len(line):
            return written.ljust(len(line))
    return MASK.encode()[: len(line)].ljust(len(line))


def _holding(lines: list[Line], needle: Needle) -> Iterator[Line]:
    """Lines that hold the text, or a part of it when it goes on in the next line."""
    texts = [line.decode(errors="replace") for _at, line in lines]
    hit = {number for number, text in enumerate(texts) if needle.within(text)}
    spellings = [folds(text) for text in texts]
    for which in range(max(map(len, spellings), default=0)):
        chosen = ((number, ways[min(which, len(ways) - 1)]) for number, ways in enumerate(spellings))
        folded = [(number, text) for number, text in chosen if text]
        starts = list(accumulate((len(text) + 1 for _number, text in folded), initial=0))
        for start, end in needle.spans(" ".join(text for _number, text in folded)):
            first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
            hit |= {folded[place][0] for place in range(first, last + 1)}
    for number in sorted(hit):
        yield lines[number]
