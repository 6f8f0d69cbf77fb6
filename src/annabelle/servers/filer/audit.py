"""Remembers every operation, also the refused ones: who, what, where, and how it ended."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import logging
import threading
from collections.abc import Generator
from datetime import datetime
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core import jsonl
from annabelle.core.errors import StorageTrouble
from annabelle.core.messages import now
from annabelle.core.trace import current_trace
from annabelle.servers.kit import current_call
from annabelle.servers.kit.files.config import AUDIT_FILES

_log = logging.getLogger(__name__)

_SHOWN_CHARS = 1000


class AuditEntry(BaseModel):
    """One operation."""

    model_config = ConfigDict(frozen=True)

    time: datetime
    operation: str
    path: str
    destination: str | None = None
    result: str = Field(description="ok, or the code of the error")
    detail: str | None = None
    agent: str | None = None
    user: str | None = None
    trace: str | None = None
    call: str | None = None


class Audit:
    """The log as a file of JSON lines, rotated; the newest entries are read first."""

    def __init__(self, file: Path, max_bytes: int = 5_000_000) -> None:
        self._file, self._max_bytes = file, max_bytes
        self._lock = threading.Lock()

    def files(self) -> list[Path]:
        """Newest first."""
        return [
            self._file,
            *(self._file.with_name(f"{self._file.name}.{number}") for number in range(1, AUDIT_FILES + 1)),
        ]

    def record(self, operation: str, path: str, destination: str | None, result: str, detail: str | None) -> None:
        """Write one entry. A log that can not be written is said in the process log; the operation has happened."""
        call = current_call()
        entry = AuditEntry(
            time=now(),
            operation=operation,
            path=_readable(path),
            destination=None if destination is None else _readable(destination),
            result=result,
            detail=detail,
            agent=call.agent_id,
            user=call.user_id,
            trace=current_trace(),
            call=call.call_id,
        )
        with self._lock:
            try:
                jsonl.append(self._file, [entry.model_dump(mode="json", exclude_none=True)], durable=False)
                if self._file.stat().st_size > self._max_bytes:
                    self._rotate()
            except (StorageTrouble, OSError) as error:
                _log.error("The audit log could not be written: %s", error)

    def search(
        self, path_filter: str | None, operation: str | None, since: datetime | None, user: str | None, limit: int
    ) -> tuple[list[AuditEntry], bool]:
        """The newest matching entries, and whether there are more."""
        found: list[AuditEntry] = []
        for entry in self._newest_first():
            if since is not None and entry.time < since:
                continue
            if (operation is None or entry.operation == operation) and (user is None or entry.user in (None, user)):
                if not _matches(entry, path_filter):
                    continue
                if len(found) == limit:
                    return found, True
                found.append(entry)
        return found, False

    def _newest_first(self) -> Generator[AuditEntry]:
        for file in self.files():
            try:
                lines = file.read_bytes().splitlines()
            except OSError:
                continue
            for line in reversed(lines):
                with contextlib.suppress(ValueError):
                    yield AuditEntry.model_validate(cast("object", json.loads(line)))

    def _rotate(self) -> None:
        files = self.files()
        for newer, older in zip(files[-2::-1], files[:0:-1], strict=True):
            with contextlib.suppress(FileNotFoundError):
                newer.replace(older)


def _matches(entry: AuditEntry, wanted: str | None) -> bool:
    if wanted is None:
        return True
    paths = [path for path in (entry.path, entry.destination) if path is not None]
    if any(char in wanted for char in "*?["):
        return any(fnmatch.fnmatchcase(path, wanted) for path in paths)
    return any(wanted.casefold() in path.casefold() for path in paths)


def _readable(path: str) -> str:
    """A refused path may hold anything; in the log it is short and on one line."""
    return path[:_SHOWN_CHARS].encode("unicode_escape").decode() if not path.isprintable() else path[:_SHOWN_CHARS]
