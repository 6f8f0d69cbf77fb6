"""Where the files of the audit begin and end: what a hub has to know before it goes on with them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from annabelle.store.audit.head import Head
from annabelle.store.audit.places import AuditPlaces
from annabelle.store.audit.record import parse

_TAIL: Final = 1 << 20


def first_number(path: Path) -> int | None:
    """The number of the record a file begins with; None when it can not be read."""
    with path.open("rb") as file:
        record = parse(file.readline())
    return record.n if record is not None else None


def last_record(newest_first: Iterable[Path]) -> Head | None:
    """The last record that can be read in these files."""
    for path in newest_first:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            for line in reversed(file.read().splitlines(keepends=True)):
                record = parse(line)
                if record is not None:
                    return Head(record.n, record.hash)
    return None


def set_torn_aside(places: AuditPlaces) -> int:
    """Move what stands behind the last whole line out of the file that grows; how many bytes that were."""
    path = places.active
    if not path.exists():
        return 0
    blob = path.read_bytes()
    torn = blob[blob.rfind(b"\n") + 1 :]
    if torn:
        with places.torn.open("ab") as aside:
            aside.write(torn + b"\n")
        os.truncate(path, len(blob) - len(torn))
    return len(torn)
