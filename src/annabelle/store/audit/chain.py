"""The files of the audit, as the one process that writes them sees them: opened, repaired, appended to, rotated."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from annabelle.core import jsonl
from annabelle.core.errors import StorageTrouble
from annabelle.core.messages import now
from annabelle.core.redact import Redactor
from annabelle.core.tools import JsonObject
from annabelle.store.audit.facts import Cleaner
from annabelle.store.audit.head import ForgedHead, Head, read_head, write_head
from annabelle.store.audit.key import has_begun, keep_key, new_key, read_key
from annabelle.store.audit.places import AuditPlaces
from annabelle.store.audit.record import BEGINNING, Record
from annabelle.store.audit.tail import first_number, last_record, set_torn_aside
from annabelle.store.lock import FileLock

_log = logging.getLogger(__name__)
HEAD_MISSING: Final = "head_missing"
DROPPED: Final = "dropped"


@dataclass(frozen=True, slots=True)
class Note:
    """What somebody wants written down."""

    kind: str
    facts: JsonObject
    at: str
    trace: str | None = None

    @classmethod
    def own(cls, event: str, **facts: object) -> Note:
        """About the audit itself."""
        return cls("audit", {"event": event, **facts}, moment())


@dataclass(frozen=True, slots=True)
class Limits:
    """When a file is full, and how many full ones are kept."""

    max_bytes: int = 10_000_000
    keep_files: int = 20


def moment() -> str:
    return now().isoformat(timespec="milliseconds")


class Chain:
    """Appends records. Not for two threads at once; a second process is kept out by a lock."""

    def __init__(self, places: AuditPlaces, limits: Limits, redact: Redactor) -> None:
        self._places, self._limits, self._redact = places, limits, redact
        self._lock = FileLock(places.active)
        self._key = b""
        self._clean: Cleaner | None = None
        self._descriptor: int | None = None
        self._last = Head(0, BEGINNING)
        self._first: int | None = None
        self._size = self._synced = 0

    def open(self) -> None:
        """Take the files over. What somebody cut off the end stays a visible gap: the numbers go on behind it."""
        try:
            self._places.active.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            self._key = self._own_key()
            self._clean = Cleaner(self._key, self._redact)
            torn = set_torn_aside(self._places)
            last, head = last_record(reversed(self._places.files())), self._head()
            self._last = max(filter(None, (last, head)), key=lambda one: one.n, default=self._last)
            self._open_active()
            if torn:
                self.append([Note.own("repaired", bytes=torn)])
            if head is None:
                self.append([Note.own(HEAD_MISSING)])
            self.sync()
        except BaseException as error:
            self._lock.release()  # or a second try would find the first one in its way
            if not isinstance(error, OSError):
                raise
            raise StorageTrouble(f"The audit can not be opened: {error.strerror}.") from error

    def _own_key(self) -> bytes:
        """The key, marked as one an audit was begun with. The head comes first: without it such a key is evidence."""
        places = self._places
        found = read_key(places.key)
        key = found or new_key()
        if (found is None and not places.files()) or places.never_begun:
            write_head(places.head, self._last, key)
        if not has_begun(places.key):
            try:
                keep_key(places.key, key, begun=True)
            except StorageTrouble:
                if found is None:
                    raise
                _log.warning("The key of the audit could not be marked yet.")  # a full disk; the next start does it
        return key

    def append(self, notes: Iterable[Note]) -> None:
        """Add records in one write: all of them, or on a full disk none."""
        assert self._clean is not None, "the chain was not opened"
        descriptor = self._descriptor if self._descriptor is not None else self._open_active()
        last, lines = self._last, bytearray()
        for note in notes:
            record = Record(last.n + 1, note.at, note.kind, note.trace, self._clean(note.facts), last.hash)
            record = record.sealed(self._key)
            lines += record.line()
            last = Head(record.n, record.hash)
        written = 0
        try:
            written = os.write(descriptor, lines)
        finally:
            if written != len(lines):
                os.ftruncate(descriptor, self._size)
        if written != len(lines):
            raise OSError(28, "No space left on device")
        self._first = self._first or self._last.n + 1
        self._last, self._size = last, self._size + written
        if self._size >= self._limits.max_bytes:
            try:
                self._rotate()
            except OSError as error:
                # What was appended is written; the file just stays longer until it can be rotated.
                _log.warning("The audit could not be rotated: %s", error.strerror)

    @property
    def unsynced(self) -> bool:
        return self._last.n > self._synced

    def sync(self) -> None:
        """Have it on disk, and only then say in the head how far it came: a power cut must not look like a cut tail."""
        last = self._last
        if self._descriptor is not None:
            os.fsync(self._descriptor)
            self._look_whether_it_is_there(self._descriptor)
        write_head(self._places.head, last, self._key)
        self._synced = last.n

    def close(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                self.sync()
            os.close(self._descriptor)
            self._descriptor = None
        self._lock.release()

    def _open_active(self) -> int:
        path = self._places.active
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._size = os.fstat(self._descriptor).st_size
        self._first = first_number(path) if self._size else None
        return self._descriptor

    def _look_whether_it_is_there(self, descriptor: int) -> None:
        """What is written to a file that somebody deleted nobody can read: the rest goes to a new one, behind a gap."""
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(self._places.active.stat(), os.fstat(descriptor)):
                return
        os.close(descriptor)
        self._descriptor = None
        self._open_active()

    def _rotate(self) -> None:
        assert self._descriptor is not None
        self.sync()
        os.close(self._descriptor)
        self._descriptor = None
        self._places.active.replace(self._places.rotated_from(self._first or self._last.n))
        self._open_active()
        jsonl.sync_folder(self._places.active.parent)
        for path in self._places.rotated()[: -self._limits.keep_files]:
            self._drop(path)

    def _drop(self, path: Path) -> None:
        """Say first what goes, so that it is not missed."""
        first, last = first_number(path), last_record([path])
        if first is None or last is None:
            return  # it was altered, and is evidence
        self.append([Note.own(DROPPED, first=first, last=last.n, last_record=last.hash)])
        self.sync()
        path.unlink(missing_ok=True)

    def _head(self) -> Head | None:
        try:
            return read_head(self._places.head, self._key)
        except ForgedHead:
            return None  # the record that notes it makes `verify` fail
