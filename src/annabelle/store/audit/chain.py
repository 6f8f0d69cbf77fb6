"""Appends records to the audit and rotates its files. Records hold names, numbers and hashes, never content."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from annabelle.core import jsonl
from annabelle.core.errors import StorageTrouble
from annabelle.core.messages import now
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.tools import JsonObject
from annabelle.store.audit.records import (
    FINGERPRINT_LENGTH,
    FIRST_PREVIOUS_HASH,
    AuditChainRecord,
    AuditHead,
    AuditPaths,
    ForgedAuditHead,
    has_started_audit,
    keyed_hash,
    move_torn_line,
    new_key,
    read_first_number,
    read_head,
    read_key,
    read_last_head,
    write_head,
    write_key,
)
from annabelle.store.file_lock import FileLock

_LONGEST_TEXT: Final = 200
_MOST_ENTRIES: Final = 50
_DEEPEST: Final = 4
_LARGEST: Final = 2**63
# Fields with people's words or tool input: records keep only their fingerprint and length.
_CONTENT_FIELDS: Final = frozenset(
    {"arguments", "content", "explanation", "message_text", "note", "reason", "reasons", "result", "snippet", "text"}
    | {"texts", "words"}
)
# A plain hash of a short text can be guessed, so it is hashed again with a key.
_FINGERPRINTS: Final = ("hash", "sha256", "digest")


class AuditFactCleaner:
    """Reduces facts to what a record may contain."""

    def __init__(self, key: bytes, redact: Redactor) -> None:
        self._key, self._redact = key, redact

    def __call__(self, facts: JsonObject) -> JsonObject:
        try:
            return self._clean(facts)
        except RecursionError:
            # Nested too deep for one pass. Clean each fact alone, so that one cannot keep the others out.
            return {name: value for one in facts.items() for name, value in self._clean_one(*one).items()}

    def _clean(self, facts: JsonObject) -> JsonObject:
        redacted = cast("JsonObject", self._redact.redact_data(facts))
        return {name[:_LONGEST_TEXT]: self._clean_fact(name, value, 1) for name, value in redacted.items()}

    def _clean_one(self, name: str, value: object) -> JsonObject:
        try:
            return self._clean({name: value})
        except RecursionError:
            return {name[:_LONGEST_TEXT]: "…"}

    def fingerprint(self, blob: bytes) -> str:
        return keyed_hash(self._key, blob)[:FINGERPRINT_LENGTH]

    def _clean_fact(self, name: str, value: object, depth: int) -> object:
        if name in _CONTENT_FIELDS and value is not None:
            blob = value.encode(errors="backslashreplace") if isinstance(value, str) else _encode_value(value)
            return {"hash": self.fingerprint(blob), "length": len(blob)}
        if isinstance(value, str) and name.endswith(_FINGERPRINTS):
            return self.fingerprint(value.encode(errors="backslashreplace"))
        return self._clean_value(value, depth)

    def _clean_value(self, value: object, depth: int) -> object:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value if abs(value) < _LARGEST else "a very large number"
        if isinstance(value, float):
            return round(value, 4) if math.isfinite(value) else str(value)
        if depth > _DEEPEST:
            return "…"
        if isinstance(value, dict):
            items = list(cast("dict[object, object]", value).items())[:_MOST_ENTRIES]
            return {str(name)[:_LONGEST_TEXT]: self._clean_fact(str(name), inner, depth + 1) for name, inner in items}
        if isinstance(value, list | tuple):
            return [self._clean_value(inner, depth + 1) for inner in cast("list[object]", value)[:_MOST_ENTRIES]]
        return str(value)[:_LONGEST_TEXT]


def _encode_value(value: object) -> bytes:
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()
    except (TypeError, ValueError, RecursionError):
        return repr(type(value)).encode()


_log = logging.getLogger(__name__)
HEAD_MISSING: Final = "head_missing"
DROPPED: Final = "dropped"


@dataclass(frozen=True, slots=True)
class AuditNote:
    kind: str
    facts: JsonObject
    at: str
    trace: str | None = None

    @classmethod
    def about_audit(cls, event: str, **facts: object) -> AuditNote:
        return cls("audit", {"event": event, **facts}, timestamp_now())


@dataclass(frozen=True, slots=True)
class AuditLimits:
    """Size at which a file is rotated, and how many rotated files are kept."""

    max_bytes: int = 10_000_000
    keep_files: int = 20


def timestamp_now() -> str:
    return now().isoformat(timespec="milliseconds")


class AuditChain:
    """Appends records. Not thread-safe; a lock keeps a second process out."""

    def __init__(self, places: AuditPaths, limits: AuditLimits, redact: Redactor) -> None:
        self._paths, self._limits, self._redact = places, limits, redact
        self._lock = FileLock(places.active)
        self._key = b""
        self._clean: AuditFactCleaner | None = None
        self._descriptor: int | None = None
        self._last = AuditHead(0, FIRST_PREVIOUS_HASH)
        self._first: int | None = None
        self._size = self._synced = 0

    def open(self) -> None:
        """Opens the files. If the tail was cut off, numbering continues after it, so the gap stays visible."""
        try:
            self._paths.active.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            self._key = self._load_key()
            self._clean = AuditFactCleaner(self._key, self._redact)
            torn = move_torn_line(self._paths)
            last, head = read_last_head(reversed(self._paths.files())), self._head()
            self._last = max(filter(None, (last, head)), key=lambda one: one.n, default=self._last)
            self._open_active()
            if torn:
                self.append([AuditNote.about_audit("repaired", bytes=torn)])
            if head is None:
                self.append([AuditNote.about_audit(HEAD_MISSING)])
            self.sync()
        except BaseException as error:
            self._lock.release()  # so that a second try can acquire it
            if not isinstance(error, OSError):
                raise
            raise StorageTrouble(f"The audit can not be opened: {error.strerror}.") from error

    def _load_key(self) -> bytes:
        """Loads or makes the key and marks it as used. Writes the head first: a marked key without one is evidence."""
        places = self._paths
        found = read_key(places.key)
        key = found or new_key()
        if (found is None and not places.files()) or places.never_started:
            write_head(places.head, self._last, key)
        if not has_started_audit(places.key):
            try:
                write_key(places.key, key, begun=True)
            except StorageTrouble:
                if found is None:
                    raise
                _log.warning("The key of the audit could not be marked yet.")  # disk full; the next start retries
        return key

    def append(self, notes: Iterable[AuditNote]) -> None:
        """Adds records in one write: all of them, or none if the disk is full."""
        assert self._clean is not None, "the chain was not opened"
        descriptor = self._descriptor if self._descriptor is not None else self._open_active()
        last, lines = self._last, bytearray()
        for note in notes:
            record = AuditChainRecord(last.n + 1, note.at, note.kind, note.trace, self._clean(note.facts), last.hash)
            record = record.seal(self._key)
            lines += record.to_line()
            last = AuditHead(record.n, record.hash)
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
                # The records are written; the file stays longer until it can be rotated.
                _log.warning("The audit could not be rotated: %s", error.strerror)

    @property
    def unsynced(self) -> bool:
        return self._last.n > self._synced

    def sync(self) -> None:
        """Syncs the file, then the head: a power cut must not look like a cut-off tail."""
        last = self._last
        if self._descriptor is not None:
            os.fsync(self._descriptor)
            self._reopen_if_deleted(self._descriptor)
        write_head(self._paths.head, last, self._key)
        self._synced = last.n

    def close(self) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                self.sync()
            os.close(self._descriptor)
            self._descriptor = None
        self._lock.release()

    def _open_active(self) -> int:
        path = self._paths.active
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._size = os.fstat(self._descriptor).st_size
        self._first = read_first_number(path) if self._size else None
        return self._descriptor

    def _reopen_if_deleted(self, descriptor: int) -> None:
        """If the file was deleted, continues in a new one, which leaves a visible gap."""
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(self._paths.active.stat(), os.fstat(descriptor)):
                return
        os.close(descriptor)
        self._descriptor = None
        self._open_active()

    def _rotate(self) -> None:
        assert self._descriptor is not None
        self.sync()
        os.close(self._descriptor)
        self._descriptor = None
        self._paths.active.replace(self._paths.rotated_path(self._first or self._last.n))
        self._open_active()
        jsonl.sync_folder(self._paths.active.parent)
        for path in self._paths.rotated()[: -self._limits.keep_files]:
            self._drop(path)

    def _drop(self, path: Path) -> None:
        """Deletes a rotated file, after recording that, so that verification does not report it missing."""
        first, last = read_first_number(path), read_last_head([path])
        if first is None or last is None:
            return  # altered, so it is evidence
        self.append([AuditNote.about_audit(DROPPED, first=first, last=last.n, last_record=last.hash)])
        self.sync()
        path.unlink(missing_ok=True)

    def _head(self) -> AuditHead | None:
        try:
            return read_head(self._paths.head, self._key)
        except ForgedAuditHead:
            return None  # the record about it makes `verify` fail
