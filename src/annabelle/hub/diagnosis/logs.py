"""Checks of the logs: their size, how many errors they get, and whether turns are still traced."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from annabelle.core.home import Home
from annabelle.core.result_text import format_size
from annabelle.hub.diagnosis.check import MEGABYTE, Check, DiagnosisContext, Problem
from annabelle.hub.diagnosis.error_baseline import ErrorBaseline, count_errors, exceeds_baseline
from annabelle.store import messages

LOG_BYTES: Final = 50 * MEGABYTE
TRACE_AGE: Final = timedelta(hours=1)
_ROTATED: Final = re.compile(r"\.\d+$")
"""Such a file is dropped by the rotation in its time."""


def list_large_logs(home: Home) -> list[Path]:
    logs = (path for path in sorted(home.logs.glob("*")) if path.is_file() and not path.name.startswith("build-"))
    return [path for path in logs if not _ROTATED.search(path.name) and path.stat().st_size >= LOG_BYTES]


async def check_sizes(context: DiagnosisContext) -> list[Problem]:
    action = "Rotate it at the terminal: annabelle down, then annabelle doctor --fix"
    return [
        Problem("warning", f"The log {path.name} has {format_size(path.stat().st_size)}.", action, path.name)
        for path in list_large_logs(context.home)
    ]


async def check_error_rate(context: DiagnosisContext) -> list[Problem]:
    try:
        known = ErrorBaseline(context.home.error_baseline_file).load()
    except ValueError:
        text = "What is usual in the logs cannot be read, so it is counted from the beginning."
        return [Problem("info", text, "Nothing needs to be done.", "damaged")]
    sample = await asyncio.to_thread(count_errors, context.home.logs, context.at)
    if not exceeds_baseline(sample, known):
        return []
    text = f"The logs got {sample.errors} errors and {sample.warnings} warnings in the last hour, far more than usual."
    return [Problem("warning", text, "/logs shows them.")]


async def check_traces(context: DiagnosisContext) -> list[Problem]:
    """Nothing is traced where nothing happens, so only a turn after the last trace counts."""
    file = context.home.traces_file
    traced = datetime.fromtimestamp(file.stat().st_mtime, UTC) if file.exists() else datetime.min.replace(tzinfo=UTC)
    answered = await context.query(messages.last_answered_at, None)
    if context.at - traced <= TRACE_AGE or answered is None or answered <= traced:
        return []
    return [Problem("warning", "Messages were answered, but nothing was traced.", "Check the space on the disk.")]


CHECKS: Final = (
    Check(
        "log-file-sizes",
        "logs",
        ("warning",),
        f"a log has {LOG_BYTES // MEGABYTE} MB or more (`build-*` and rotated ones do not count)",
        check_sizes,
    ),
    Check(
        "error-rate-baseline",
        "logs",
        ("warning",),
        "the last hour has 3 times the errors of a usual one and 3 or more of them, or the same of warnings and 5 or"
        " more; usual is the mean of the hourly samples of 168 h, of which there must be 6",
        check_error_rate,
    ),
    Check(
        "trace-log-freshness",
        "logs",
        ("warning",),
        "`traces.jsonl` is older than 1 h, and a message was answered since",
        check_traces,
    ),
)
