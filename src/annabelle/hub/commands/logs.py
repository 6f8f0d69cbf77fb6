"""`/logs`: the latest warnings and errors of all logs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Final

from annabelle.core.log_tail import read_log_tail
from annabelle.hub.commands.command import Command, CommandAnswer, CommandCall, CommandInfo

_DEFAULT: Final = 10
_MOST: Final = 50
_LINES: Final = 200
"""Lines at the end of each log that are looked through."""
_LINE_BYTES: Final = 500
_SHOWN_CHARS: Final = 300
_TROUBLE: Final = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ (?:WARNING|ERROR|CRITICAL) .*")


class LogsCommand(Command):
    info = CommandInfo(
        name="logs",
        usage="[N]",
        summary=f"The latest N warnings and errors of all logs, up to {_MOST}.",
        examples=("/logs", "/logs 20"),
        admin=True,
        scope="manage",
    )

    async def run(self, call: CommandCall) -> CommandAnswer:
        count = self.read_count(call.words, _DEFAULT, _MOST)
        found = await asyncio.to_thread(_collect, self.deps.status.base.home.logs)
        shown = [f"{line} [{name}]" for line, name in found[-count:]]
        return CommandAnswer("\n".join(shown) or "No warning and no error stands in the logs.")


def _collect(folder: Path) -> list[tuple[str, str]]:
    """The lines with the name of their log, oldest first. They were redacted when they were written."""
    found: list[tuple[str, str]] = []
    for path in sorted(folder.glob("*.log")):
        found += [(line[:_SHOWN_CHARS], path.stem) for line in _read_end(path) if _TROUBLE.fullmatch(line)]
    return sorted(found)


def _read_end(path: Path) -> list[str]:
    try:
        return read_log_tail(path, _LINES * _LINE_BYTES).splitlines()[-_LINES:]
    except OSError:
        return []
