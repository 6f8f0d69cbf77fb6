"""`/logs`: the logs of the hub, its agents and servers, for the owner."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from pydantic import Field

from annabelle.core.log_tail import LogFollower, find_log, list_logs, read_lines
from annabelle.hub.api.endpoint import ApiAnswer, ApiRouter, TheHub, document

router = ApiRouter("logs")


class LogView(ApiAnswer):
    name: str
    size: int
    changed_at: datetime


class LogList(ApiAnswer):
    logs: list[LogView]


class LogLines(ApiAnswer):
    """Lines of a log, the newest last. Known secrets are masked."""

    name: str
    lines: list[str]
    position: str = Field(description="Sent back, it gives only what was added since")


@router.get("/logs", **document("All logs"))
async def list_log_files(hub: TheHub) -> LogList:
    """Of the hub, its agents (thinker-NAME) and its servers."""

    def look() -> list[LogView]:
        found = [(name, path.stat()) for name, path in list_logs(hub.base.home).items()]
        return [
            LogView(name=name, size=about.st_size, changed_at=datetime.fromtimestamp(about.st_mtime, UTC))
            for name, about in found
        ]

    return LogList(logs=await asyncio.to_thread(look))


@router.get("/logs/{name}", **document("The newest lines of a log", 404))
async def read_log(
    name: str,
    hub: TheHub,
    lines: Annotated[int, Query(ge=1, le=5000, description="How many of the newest")] = 200,
    words: Annotated[str, Query(max_length=200, description="Only lines with these words")] = "",
    position: Annotated[str, Query(max_length=60, description="Only what was added since; of an earlier answer")] = "",
) -> LogLines:
    def read() -> tuple[list[str], str]:
        path = find_log(hub.base.home, name)
        follower = LogFollower(path, position)
        if not position:
            return read_lines(path, lines, words), follower.position
        new = [line for line in follower.new_lines() if words.lower() in line.lower()]
        return new[-lines:], follower.position

    found, reached = await asyncio.to_thread(read)
    return LogLines(name=name, lines=[hub.base.redact(line) for line in found], position=reached)
