"""Audit records and their files. A record is canonical JSON; its keyed hash covers the previous record's hash."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from io import BufferedReader
from pathlib import Path
from typing import Final, cast

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import Home, write_atomically
from annabelle.core.tools import JsonObject

FINGERPRINT_LENGTH: Final = 16
_STARTED_MARK: Final = b"\nbegun\n"
"""Follows a key that an audit was begun with; forgetting uses the key too, possibly earlier."""


def read_key(path: Path) -> bytes | None:
    try:
        return path.read_bytes().removesuffix(_STARTED_MARK) or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageTrouble(f"The key {path.name} can not be read: {error.strerror}.") from error


def has_started_audit(path: Path) -> bool:
    """Whether the key is marked as used by an audit; a missing head was then removed."""
    try:
        return path.read_bytes().endswith(_STARTED_MARK)
    except FileNotFoundError:
        return False


def get_or_create_key(path: Path) -> bytes:
    return read_key(path) or write_key(path, new_key())


def new_key() -> bytes:
    return secrets.token_hex(32).encode()


def write_key(path: Path, key: bytes, *, begun: bool = False) -> bytes:
    try:
        write_atomically(path, (key + _STARTED_MARK if begun else key).decode())
    except OSError as error:
        raise StorageTrouble(f"The key {path.name} can not be used: {error.strerror}.") from error
    return key


def keyed_hash(key: bytes, blob: bytes) -> str:
    """Hashes with a key, so that short texts cannot be guessed without it."""
    return hmac.digest(key, blob, hashlib.sha256).hex()


FIRST_PREVIOUS_HASH: Final = "0" * 64
"""Previous hash of the very first record."""

_FIELD_NAMES: Final = frozenset({"n", "at", "kind", "trace", "facts", "prev", "hash"})


@dataclass(frozen=True, slots=True)
class AuditChainRecord:
    """One audit record, number `n` of this home."""

    n: int
    at: str
    kind: str
    trace: str | None
    facts: JsonObject
    prev: str
    hash: str = ""

    def seal(self, key: bytes) -> AuditChainRecord:
        return AuditChainRecord(self.n, self.at, self.kind, self.trace, self.facts, self.prev, self._compute_hash(key))

    def is_genuine(self, key: bytes) -> bool:
        return self.hash == self._compute_hash(key)

    def to_line(self) -> bytes:
        return _canonical_json(self._body() | {"hash": self.hash}) + b"\n"

    def _compute_hash(self, key: bytes) -> str:
        return keyed_hash(key, _canonical_json(self._body()))

    def _body(self) -> JsonObject:
        return {
            "n": self.n,
            "at": self.at,
            "kind": self.kind,
            "trace": self.trace,
            "facts": self.facts,
            "prev": self.prev,
        }


def parse_record(line: bytes) -> AuditChainRecord | None:
    """Parses a line; None unless it is exactly what `to_line` writes."""
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    body = cast("JsonObject", found)
    match body:
        case {"n": int(n), "at": str(at), "kind": str(kind), "facts": dict(), "prev": str(prev), "hash": str(digest)}:
            trace = body.get("trace")
            if body.keys() != _FIELD_NAMES or not (trace is None or isinstance(trace, str)) or not _is_timestamp(at):
                return None
            # Reject any other spelling, so that no byte can be changed unnoticed.
            record = AuditChainRecord(n, at, kind, trace, cast("JsonObject", body["facts"]), prev, digest)
            return record if record.to_line() == line else None
        case _:
            return None


def _is_timestamp(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _canonical_json(body: JsonObject) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


@dataclass(frozen=True, slots=True)
class AuditPaths:
    """Paths of the audit. A rotated file is named after its first record, so that rotation is one rename."""

    active: Path
    head: Path
    key: Path
    forgotten: Path
    """Log of forget requests; it needs the key even in a home without an audit."""

    @classmethod
    def from_home(cls, home: Home) -> AuditPaths:
        return cls(home.audit_file, home.audit_head_file, home.audit_key_file, home.forgotten_file)

    @property
    def torn(self) -> Path:
        """Remains of lines torn by a crash."""
        return self.active.with_name("audit.torn")

    @property
    def never_started(self) -> bool:
        """Whether there is a key but never was an audit: something was forgotten first, and the key has no mark."""
        traces = self.head.exists() or self.torn.exists() or bool(self.files())
        return self.forgotten.exists() and not traces and not has_started_audit(self.key)

    def rotated(self) -> list[Path]:
        return sorted(self.active.parent.glob("audit-*.jsonl"))

    def rotated_path(self, first: int) -> Path:
        return self.active.with_name(f"audit-{first:012d}.jsonl")

    def files(self) -> list[Path]:
        """All files with records, oldest first."""
        return [*self.rotated(), *([self.active] if self.active.exists() else [])]


_WIDTH: Final = 256


@dataclass(frozen=True, slots=True)
class AuditHead:
    """Number and hash of the last record known to be on disk. Later ones may follow."""

    n: int
    hash: str


class ForgedAuditHead(Exception):
    """The head was not written with the key."""


def read_head(path: Path, key: bytes) -> AuditHead | None:
    try:
        blob = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageTrouble(f"{path.name} can not be read: {error.strerror}.") from error
    try:
        found = json.loads(blob)
        head = AuditHead(int(found["n"]), str(found["hash"]))
        genuine = found["mac"] == _compute_mac(head, key)
    except (ValueError, KeyError, TypeError) as error:
        raise ForgedAuditHead from error
    if not genuine:
        raise ForgedAuditHead
    return head


def write_head(path: Path, head: AuditHead, key: bytes) -> None:
    """Overwrites the head in one write of fixed width, which needs no disk space and leaves no partial head."""
    body = json.dumps({"n": head.n, "hash": head.hash, "mac": _compute_mac(head, key)})
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, body.ljust(_WIDTH - 1).encode() + b"\n", 0)
    finally:
        os.close(descriptor)


def _compute_mac(head: AuditHead, key: bytes) -> str:
    return keyed_hash(key, f"head:{head.n}:{head.hash}".encode())


_TAIL_BYTES: Final = 1 << 20


def read_first_number(path: Path) -> int | None:
    """Returns the number of the first record in a file; None if it is unreadable."""
    with path.open("rb") as file:
        record = parse_record(file.readline())
    return record.n if record is not None else None


def read_last_head(newest_first: Iterable[Path]) -> AuditHead | None:
    for path in newest_first:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            for line in reversed(file.read().splitlines(keepends=True)):
                record = parse_record(line)
                if record is not None:
                    return AuditHead(record.n, record.hash)
    return None


def move_torn_line(places: AuditPaths) -> int:
    """Moves a torn last line out of the active file and returns its size in bytes."""
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


_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class AuditQuery:
    last: int = 50
    kind: str | None = None
    since: datetime | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.since.tzinfo is None:
            object.__setattr__(self, "since", self.since.astimezone())  # without a zone, local time is meant


def read_latest(places: AuditPaths, wanted: AuditQuery) -> list[AuditChainRecord]:
    """Returns the newest matching records, oldest first. Skips unreadable ones; `verify_audit` reports them."""
    found: list[AuditChainRecord] = []
    with open_files(places) as files:
        for _path, file in reversed(files):
            found = [*deque(_matching_records(file, wanted), maxlen=wanted.last - len(found)), *found]
            if len(found) >= wanted.last:
                break
    return found


def _matching_records(file: BufferedReader, wanted: AuditQuery) -> Iterator[AuditChainRecord]:
    mark = f'"kind":"{wanted.kind}"'.encode() if wanted.kind is not None else b""
    for line in file:
        # Most lines of another kind need no parsing.
        record = parse_record(line) if mark in line else None
        if record is not None and _matches(record, wanted):
            yield record


@contextlib.contextmanager
def open_files(places: AuditPaths) -> Generator[list[tuple[Path, BufferedReader]]]:
    """Opens all files, oldest first, so that a concurrent rotation neither hides nor repeats one."""
    try:
        with contextlib.ExitStack() as stack:
            files = _open_consistent(places, stack)
            yield files
    except OSError as error:
        raise StorageTrouble(f"The audit can not be read: {error.strerror}.") from error


def _open_consistent(places: AuditPaths, stack: contextlib.ExitStack) -> list[tuple[Path, BufferedReader]]:
    for _ in range(_TRIES):
        paths = places.files()
        with contextlib.suppress(FileNotFoundError):
            files = [(path, stack.enter_context(path.open("rb"))) for path in paths]
            if places.files() == paths:
                return files
    raise StorageTrouble("The audit is being rotated all the time.", hint="Try again.")


def _matches(record: AuditChainRecord, wanted: AuditQuery) -> bool:
    if wanted.kind is not None and record.kind != wanted.kind:
        return False
    return wanted.since is None or datetime.fromisoformat(record.at) >= wanted.since
