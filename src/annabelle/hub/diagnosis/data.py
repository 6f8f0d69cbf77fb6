"""Checks of the data of a home: its size, how many conversations are open, and whether its description is current."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Final

from annabelle.core.result_text import format_size
from annabelle.hub.diagnosis.check import MEGABYTE, Check, DiagnosisContext, Problem
from annabelle.hub.diagnosis.tools import measure_drift
from annabelle.store import threads
from annabelle.store.file_size import measure_folder
from annabelle.toolbox.external.servers import KnownServers

DATA_BYTES: Final = 100 * MEGABYTE
ACTIVE_SESSIONS: Final = 20
SNAPSHOT_AGE: Final = timedelta(hours=24)


async def check_size(context: DiagnosisContext) -> list[Problem]:
    size = await asyncio.to_thread(measure_folder, context.home.data)
    if size < DATA_BYTES:
        return []
    text = f"The data folder takes {format_size(size)}."
    return [Problem("info", text, "Nothing needs to be done while the disk has space.")]


async def check_sessions(context: DiagnosisContext) -> list[Problem]:
    since = context.at - timedelta(minutes=context.settings.agent_session_timeout)
    active = await context.query(lambda conn: threads.count_used_since(conn, since), 0)
    if active < ACTIVE_SESSIONS:
        return []
    text = f"{active} conversations are active at the same time."
    return [Problem("warning", text, "See whether all of them are yours: annabelle sessions")]


async def check_snapshot(context: DiagnosisContext) -> list[Problem]:
    """The list of servers and tools is written when it changes, so an old one that still fits is current."""
    file, home = context.home.known_servers_file, context.home
    if not file.exists() or not any(home.documentation.glob("*.md")):
        text = "The documentation of this home, or its list of servers and tools, is missing."
        return [Problem("info", text, "Restart Annabelle: it writes them at its start.")]
    age = context.at - datetime.fromtimestamp(file.stat().st_mtime, UTC)
    if context.live is None or age <= SNAPSHOT_AGE:
        return []
    names = KnownServers(file).compare(server.name for server in context.live.servers)
    if not names and not measure_drift(context):
        return []
    text = f"The list of servers and tools is {age // timedelta(hours=1)} hours old and no longer right."
    return [Problem("info", text, "Restart Annabelle: it writes it at its start.")]


CHECKS: Final = (
    Check(
        "data-dir-size",
        "data",
        ("info",),
        f"the files in `data/` take {DATA_BYTES // MEGABYTE} MB or more",
        check_size,
    ),
    Check(
        "session-count",
        "data",
        ("warning",),
        f"{ACTIVE_SESSIONS} or more conversations were used within `AGENT_SESSION_TIMEOUT` minutes",
        check_sessions,
    ),
    Check(
        "doc-freshness",
        "data",
        ("info",),
        "`documentation/` or `last-known-mcps.json` is missing, or the latter is older than 24 h and no longer right",
        check_snapshot,
    ),
)
