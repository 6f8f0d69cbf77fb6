"""Runs every disk operation in a thread, explains its errors and writes it to the audit log."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import logging
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Generator
from datetime import datetime
from pathlib import Path
from typing import TypeVar, cast

from pydantic import Field

from annabelle.core import jsonl
from annabelle.core.errors import AnnabelleError, NotAllowed, StorageTrouble
from annabelle.core.messages import now
from annabelle.core.trace import current_trace
from annabelle.servers.kit import Result, StopSign, current_call, in_thread
from annabelle.servers.kit.files.config import AUDIT_FILES, FilesConfig
from annabelle.servers.kit.files.paths import PART_PREFIX, TEMP, AllowedRoot, PathResolver, ResolvedPath
from annabelle.servers.kit.files.walker import PathWalker, explain_os_error
from annabelle.servers.kit.files.workspace import make_workspace

_log = logging.getLogger(__name__)

_SHOWN_CHARS = 1000


class AuditEntry(Result):
    """One operation."""

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


class FileAuditLog:
    """The audit log: rotated files of JSON lines, read newest first."""

    def __init__(self, file: Path, max_bytes: int = 5_000_000) -> None:
        self._file, self._max_bytes = file, max_bytes
        self._lock = threading.Lock()

    def files(self) -> list[Path]:
        """The log files, newest first."""
        return [
            self._file,
            *(self._file.with_name(f"{self._file.name}.{number}") for number in range(1, AUDIT_FILES + 1)),
        ]

    def record(self, operation: str, path: str, destination: str | None, result: str, detail: str | None) -> None:
        """Write one entry. A failure only goes to the process log, because the operation has happened."""
        call = current_call()
        entry = AuditEntry(
            time=now(),
            operation=operation,
            path=_make_printable(path),
            destination=None if destination is None else _make_printable(destination),
            result=result,
            detail=detail,
            agent=call.agent_id,
            user=call.user_id,
            trace=current_trace(),
            call=call.call_id,
        )
        with self._lock:
            try:
                jsonl.append_records(self._file, [entry.model_dump(mode="json", exclude_none=True)], durable=False)
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
                if not _matches_path(entry, path_filter):
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


def _matches_path(entry: AuditEntry, wanted: str | None) -> bool:
    if wanted is None:
        return True
    paths = [path for path in (entry.path, entry.destination) if path is not None]
    if any(char in wanted for char in "*?["):
        return any(fnmatch.fnmatchcase(path, wanted) for path in paths)
    return any(wanted.casefold() in path.casefold() for path in paths)


def _make_printable(path: str) -> str:
    """Shorten a path and escape unprintable characters, since a refused path may contain anything."""
    return path[:_SHOWN_CHARS].encode("unicode_escape").decode() if not path.isprintable() else path[:_SHOWN_CHARS]


_PART = re.compile(re.escape(PART_PREFIX) + r"(\d+)-[0-9a-f]+")
_KEPT_FOLDERS = ("backups", "trash")
_MAX_DEPTH = 50


def clean_temp(walker: PathWalker, workspace: AllowedRoot, days: float) -> None:
    """Remove what is older than `days` from temp/. What cannot be removed is left for the next time."""
    oldest = time.time() - days * 86_400
    spot = ResolvedPath(workspace, (TEMP,))
    try:
        with walker.open_readable_folder(spot) as folder:
            _clean_folder(walker, folder, spot, oldest, 0)
    except FileNotFoundError:
        return
    except (OSError, NotAllowed) as error:
        _log.warning("temp was not cleaned: %s", error)


def _clean_folder(walker: PathWalker, folder: int, here: ResolvedPath, oldest: float, depth: int) -> None:
    with os.scandir(folder) as entries:
        listed = list(entries)
    for entry in listed:
        with contextlib.suppress(OSError, NotAllowed):
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                if depth < _MAX_DEPTH:
                    child = here.child(entry.name)
                    with walker.open_child_folder(folder, child) as inner:
                        _clean_folder(walker, inner, child, oldest, depth + 1)
                if not (depth == 0 and entry.name in _KEPT_FOLDERS) and _last_change(status) < oldest:
                    os.rmdir(entry.name, dir_fd=folder)
            elif _last_change(status) < oldest or (depth == 0 and _is_orphan(entry.name)):
                os.unlink(entry.name, dir_fd=folder)


def _last_change(status: os.stat_result) -> float:
    """When it came here: moving an old file to the trash changes its ctime, not its mtime."""
    return max(status.st_mtime, status.st_ctime)


def _is_orphan(name: str) -> bool:
    """Whether this is an unfinished write of a process that is gone."""
    match = _PART.fullmatch(name)
    if match is None:
        return False
    try:
        os.kill(int(match[1]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


T = TypeVar("T")

_CLEAN_EVERY_SECONDS = 6 * 3600.0


class FileOperations:
    """What the tools share: the path resolver, the audit log, and running operations."""

    def __init__(self, config: FilesConfig) -> None:
        self.config = config
        self.places = PathResolver(config)
        self.audit = FileAuditLog(config.audit_file)
        self._cleaned_at: float | None = None
        self._lock = threading.Lock()

    async def perform(
        self,
        operation: str,
        path: str,
        operate: Callable[[PathWalker, StopSign], T],
        *,
        destination: str | None = None,
        audited: bool = True,
    ) -> T:
        """Run the operation in a thread. `path` is what the caller wrote, for the log and error messages."""

        def run_in_thread(stop: StopSign) -> T:
            result, detail = "cancelled", None
            try:
                self._prepare_workspace()
                outcome = operate(PathWalker(self.places), stop)
                result = "ok"
            except AnnabelleError as error:
                result, detail = error.code, error.message
                raise
            except OSError as error:
                explained = explain_os_error(error, path)
                result, detail = explained.code, explained.message
                raise explained from error
            except Exception:
                result = "internal_error"
                raise
            finally:
                if audited:
                    self.audit.record(operation, path, destination, result, detail)
            return outcome

        return await in_thread(run_in_thread)

    def _prepare_workspace(self) -> None:
        """Create the workspace on first use and clean its temp folder regularly."""
        with self._lock:
            make_workspace(self.places.workspace.path)
            due = self._cleaned_at is None or time.monotonic() - self._cleaned_at > _CLEAN_EVERY_SECONDS
            if due:
                self._cleaned_at = time.monotonic()
                clean_temp(PathWalker(self.places), self.places.workspace, self.config.cleanup_days)
