"""Logging for every process: one file per component, the trace id in every line, secrets masked (TRC-03)."""

from __future__ import annotations

import logging
import logging.handlers
import sys
from pathlib import Path

from annabelle.core.redact import Redactor
from annabelle.core.trace import current_trace

_FORMAT = "%(asctime)s %(levelname)-7s %(trace)s %(name)s: %(message)s"


class _Formatter(logging.Formatter):
    def __init__(self, redact: Redactor) -> None:
        super().__init__(_FORMAT)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        record.trace = current_trace() or "-"
        return self._redact(super().format(record))


class _QuietFileHandler(logging.handlers.RotatingFileHandler):
    """A full disk costs log lines, never the work that wanted to log."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def configure_logging(
    component: str, folder: Path | None, level: str, redact: Redactor, *, to_stderr: bool = False
) -> None:
    """Send this process's log to `logs/{component}.log` (rotated), and to stderr when nobody else shows it."""
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
        handler.setFormatter(_Formatter(redact))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level.upper())
    for chatty in (
        "httpx",
        "httpx2",
        "httpcore",
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
