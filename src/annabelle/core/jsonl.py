"""Append-only JSON lines that survive a crash in the middle of a line (SES-01)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from annabelle.core.errors import StorageTrouble, explain_os_error

_log = logging.getLogger(__name__)

JsonRecord = dict[str, object]


def append_records(path: Path, records: Iterable[JsonRecord], *, durable: bool = True) -> None:
    """Appends records in one write. A crash leaves all of them, or one torn last line that `load_records` repairs."""
    blob = _encode_records(records)
    hint = "Free some disk space; nothing before it was lost."
    with explain_os_error(StorageTrouble, f"{path.name} could not be written", hint=hint):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                blob = b"\n" + blob  # keeps a line torn by a crash separate
            written = os.write(descriptor, blob)
            if written != len(blob):
                os.ftruncate(descriptor, size)
                raise OSError(28, "No space left on device")
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def rewrite_records(path: Path, records: Iterable[JsonRecord]) -> None:
    """Replaces all records atomically."""
    temporary = path.with_name(f"{path.name}.tmp")
    hint = "Free some disk space; the file is as it was."
    with explain_os_error(StorageTrouble, f"{path.name} could not be rewritten", hint=hint):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_encode_records(records))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Syncs a folder, so that files just created or renamed in it survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def load_records(path: Path) -> list[JsonRecord]:
    """Reads every valid record. A torn last line is cut off the file; a damaged line in the middle is skipped."""
    try:
        blob = path.read_bytes()
    except FileNotFoundError:
        return []
    records: list[JsonRecord] = []
    good_until = position = 0
    for line in blob.splitlines(keepends=True):
        position += len(line)
        record = _parse(line)
        if record is not None:
            records.append(record)
            good_until = position
        elif line.strip():
            _log.warning("%s: a damaged line before byte %d was passed over", path.name, position)
    if good_until < len(blob):
        _truncate(path, good_until)
    elif blob and not blob.endswith(b"\n"):
        append_records(path, [], durable=False)
    return records


def _encode_records(records: Iterable[JsonRecord]) -> bytes:
    return b"".join(_encode_record(record) for record in records)


def _encode_record(record: JsonRecord) -> bytes:
    try:
        return json.dumps(record, ensure_ascii=False, default=str).encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate must be escaped
        return json.dumps(record, default=str).encode() + b"\n"


def _parse(line: bytes) -> JsonRecord | None:
    try:
        record = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _truncate(path: Path, size: int) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
