"""Reads the audit as it lies on disk, also while a hub goes on writing it."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import datetime
from io import BufferedReader
from pathlib import Path
from typing import Final

from annabelle.core.errors import StorageTrouble
from annabelle.store.audit.places import AuditPlaces
from annabelle.store.audit.record import Record, parse

_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records to show."""

    last: int = 50
    kind: str | None = None
    since: datetime | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.since.tzinfo is None:
            object.__setattr__(self, "since", self.since.astimezone())  # said without a zone, it is meant here


def latest(places: AuditPlaces, wanted: Wanted) -> list[Record]:
    """The newest records that are wanted, oldest first. What can not be read is passed over; `verify` names it."""
    found: list[Record] = []
    with opened(places) as files:
        for _path, file in reversed(files):
            found = [*deque(_wanted(file, wanted), maxlen=wanted.last - len(found)), *found]
            if len(found) >= wanted.last:
                break
    return found


def _wanted(file: BufferedReader, wanted: Wanted) -> Iterator[Record]:
    mark = f'"kind":"{wanted.kind}"'.encode() if wanted.kind is not None else b""
    for line in file:
        # Most lines need not be parsed to know that they are of another kind.
        record = parse(line) if mark in line else None
        if record is not None and _fits(record, wanted):
            yield record


@contextlib.contextmanager
def opened(places: AuditPlaces) -> Generator[list[tuple[Path, BufferedReader]]]:
    """All files at one moment, oldest first: a rotation meanwhile neither hides one nor shows it twice."""
    try:
        with contextlib.ExitStack() as stack:
            files = _opened_at_once(places, stack)
            yield files
    except OSError as error:
        raise StorageTrouble(f"The audit can not be read: {error.strerror}.") from error


def _opened_at_once(places: AuditPlaces, stack: contextlib.ExitStack) -> list[tuple[Path, BufferedReader]]:
    for _ in range(_TRIES):
        paths = places.files()
        with contextlib.suppress(FileNotFoundError):
            files = [(path, stack.enter_context(path.open("rb"))) for path in paths]
            if places.files() == paths:
                return files
    raise StorageTrouble("The audit is being rotated all the time.", hint="Try again.")


def _fits(record: Record, wanted: Wanted) -> bool:
    if wanted.kind is not None and record.kind != wanted.kind:
        return False
    return wanted.since is None or datetime.fromisoformat(record.at) >= wanted.since
