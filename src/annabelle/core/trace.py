"""Trace ids, the trace file and log files, with secrets masked (TRC-01 to TRC-03)."""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Generator
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from annabelle.core.ids import is_id, new_id
from annabelle.core.messages import now
from annabelle.core.secrets.redactor import Redactor

_current: ContextVar[str | None] = ContextVar("annabelle_trace", default=None)


def current_trace() -> str | None:
    return _current.get()


def accept_trace(offered: str | None) -> str:
    """Returns a caller's trace id if it is one of ours, else a new one."""
    return offered if offered is not None and is_id(offered, "tr") else new_id("tr")


@contextlib.contextmanager
def use_trace(trace_id: str | None) -> Generator[str]:
    """Runs the block in this trace, or in a new one."""
    token = _current.set(trace_id or new_id("tr"))
    try:
        yield _current.get() or ""
    finally:
        _current.reset(token)


class TraceFile:
    """Appends one JSON line per event, best effort: a full disk must not stop a turn."""

    def __init__(
        self, path: Path, component: str, redact: Redactor, max_bytes: int = 20_000_000, keep: int = 5
    ) -> None:
        self._path, self._component, self._redact = path, component, redact
        self._max_bytes, self._keep = max_bytes, keep
        self._lock = threading.Lock()

    def write(self, event: str, data: dict[str, object] | None = None, trace_id: str | None = None) -> None:
        record = {
            "trace_id": trace_id or current_trace(),
            "ts": now().isoformat(timespec="milliseconds"),
            "mcp": self._component,
            "event": event,
            "data": self._redact.redact_data(data or {}),
        }
        line = json.dumps(record, ensure_ascii=False, default=str) + "\n"
        # Processes share the file: with O_APPEND a single write of one line is not interleaved.
        with self._lock, contextlib.suppress(OSError):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, line.encode(errors="backslashreplace"))  # a lone surrogate must not raise
                full = os.fstat(descriptor).st_size > self._max_bytes
            finally:
                os.close(descriptor)
            if full:
                self._rotate()

    def _rotate(self) -> None:
        for number in range(self._keep - 1, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            if older.exists():
                older.replace(self._path.with_name(f"{self._path.name}.{number + 1}"))
        with contextlib.suppress(FileNotFoundError):
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))


def read_trace(path: Path, trace_id: str, keep: int = 5) -> list[dict[str, object]]:
    """Reads all events of one trace, oldest first, also from rotated files."""
    quoted_id = f'"{trace_id}"'
    found: list[dict[str, object]] = []
    for file in [*(path.with_name(f"{path.name}.{n}") for n in range(keep, 0, -1)), path]:
        if not file.exists():
            continue
        with file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if quoted_id in line:
                    with contextlib.suppress(json.JSONDecodeError):
                        record = json.loads(line)
                        if record.get("trace_id") == trace_id:
                            found.append(record)
    return sorted(found, key=lambda record: str(record.get("ts", "")))


def find_last_turn(path: Path) -> str | None:
    """The trace id of the last received message."""
    for file in (path, path.with_name(f"{path.name}.1")):
        if file.exists():
            with file.open(encoding="utf-8", errors="replace") as lines:
                found = deque((line for line in lines if '"message.received"' in line), maxlen=1)
            if found and (named := re.search(r'"trace_id": "(tr_\w+)"', found[0])):
                return named[1]
    return None


_FORMAT = "%(asctime)s %(levelname)-7s %(trace)s %(name)s: %(message)s"


class _RedactingFormatter(logging.Formatter):
    def __init__(self, redact: Redactor) -> None:
        super().__init__(_FORMAT)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        record.trace = current_trace() or "-"
        return self._redact(super().format(record))


class _QuietFileHandler(logging.handlers.RotatingFileHandler):
    """Ignores write errors: a full disk loses log lines, but stops no work."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


SHOWN_IN_CHAT: Final = {"shown_in_chat": True}
"""`extra` of a log record that a person should see too, such as one about a damaged file of theirs."""


class ChatNotices(logging.Handler):
    """Keeps what is logged `SHOWN_IN_CHAT` until it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: deque[str] = deque(maxlen=20)

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "shown_in_chat", False):
            self._texts.append(record.getMessage())

    def take(self) -> list[str]:
        """The texts since the last time."""
        return [self._texts.popleft() for _ in range(len(self._texts))]


def configure_logging(
    component: str, folder: Path | None, level: str, redact: Redactor, *, to_stderr: bool = False
) -> None:
    """Logs to `logs/{component}.log` (rotated), and to stderr if asked or without a folder."""
    handlers: list[logging.Handler] = []
    if folder is not None:
        handlers.append(
            _QuietFileHandler(
                folder / f"{component}.log", maxBytes=10_000_000, backupCount=3, encoding="utf-8", delay=True
            )
        )
    if to_stderr or not handlers:
        handlers.append(logging.StreamHandler(sys.stderr))
    for handler in handlers:
        handler.setFormatter(_RedactingFormatter(redact))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level.upper())
    for chatty in (
        "httpx2",
        "httpcore2",
        "uvicorn",
        "uvicorn.error",
        "uvicorn.access",
        "dbos",
        "mcp",
        "asyncio",
        "watchfiles",
        "ddgs",
        "primp",
    ):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))
