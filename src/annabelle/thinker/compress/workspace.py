"""What an agent is working on: open files, notes, tasks and what it saw last (CMP-01).

It is shown anew with each request and never becomes history. It is kept per thread in a file of the agent's folder,
also where the database is shared: an agent runs in one process at a time, and its folder is its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from annabelle.core.errors import AnnabelleError, StorageTrouble
from annabelle.core.home import write_atomically
from annabelle.core.tools import ToolResult
from annabelle.thinker.compress.desk import Desk
from annabelle.thinker.context.budget import shortened, tokens

MOST_TOKENS: Final = 4_900
_OBSERVATIONS: Final = 6
_OBSERVATION_CHARS: Final = 160
_FEWEST_FILE_TOKENS: Final = 60

_log = logging.getLogger(__name__)

ReadFile = Callable[[str], Awaitable[ToolResult]]
"""Reads a file the way the agent itself would, with no more rights."""


class ThreadWorkspace:
    """The workspace of one thread, in one turn."""

    def __init__(self, path: Path, desk: Desk, read_file: ReadFile) -> None:
        self._path, self.desk, self._read_file = path, desk, read_file
        self._texts: dict[str, str] = {}
        self._stale = True
        self._seen: deque[str] = deque(maxlen=_OBSERVATIONS)

    @classmethod
    async def open(cls, folder: Path, thread_id: str, read_file: ReadFile) -> ThreadWorkspace:
        """What the thread left on its desk; an unreadable file is an empty desk."""
        path = folder / f"{thread_id}.json"
        return cls(path, await asyncio.to_thread(_load, path), read_file)

    async def render(self) -> str:
        """The workspace as it is now, within its budget; empty when there is nothing in it."""
        if self._stale:
            await self._read_files()
        desk = self.desk
        sections = [
            _listed("Tasks", [f"[{'x' if task.done else ' '}] {task.text}" for task in desk.tasks]),
            _listed("Notes", [f"- {note}" for note in desk.notes]),
            _listed("Seen last", [f"- {line}" for line in self._seen]) if desk != Desk() else "",
        ]
        text = "\n".join(section for section in sections if section)
        text = shortened(text, MOST_TOKENS)
        return "\n".join(part for part in (self._files(MOST_TOKENS - tokens(text)), text) if part)

    def observe(self, tool: str, result: ToolResult) -> None:
        """Note what a call brought to light. Any call may have changed a file, so they are read again."""
        self._stale = self._stale or bool(self.desk.open_files)
        state = "failed" if result.is_error else "ok"
        first = " ".join(result.text.split())[:_OBSERVATION_CHARS]
        self._seen.append(f"{tool} {state}: {first}")

    async def change(self, desk: Desk) -> None:
        """Keep another desk, on disk before anything is answered."""
        try:
            await asyncio.to_thread(write_atomically, self._path, desk.model_dump_json())
        except OSError as error:
            raise StorageTrouble(f"The workspace can not be written: {error.strerror}.") from error
        self._stale = self._stale or desk.open_files != self.desk.open_files
        self.desk = desk

    async def _read_files(self) -> None:
        self._stale = False
        found = await asyncio.gather(*(self._text(path) for path in self.desk.open_files))
        self._texts = dict(zip(self.desk.open_files, found, strict=True))

    async def _text(self, path: str) -> str:
        try:
            result = await self._read_file(path)
        except AnnabelleError as error:
            return f"(can not be read: {error.message})"
        return f"(can not be read: {result.text})" if result.is_error else result.text

    def _files(self, room: int) -> str:
        """Each file with its share of the room; what short ones leave is for the long ones."""
        waiting = sorted(self._texts.items(), key=lambda item: len(item[1]))
        shown: dict[str, str] = {}
        for place, (path, text) in enumerate(waiting):
            share = max(_FEWEST_FILE_TOKENS, room // (len(waiting) - place))
            piece = f"File {path}:\n{shortened(text, max(1, share - tokens(path) - 4))}"
            shown[path] = piece
            room -= tokens(piece)
        return "\n".join(shown[path] for path in self.desk.open_files if path in shown)


def _listed(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *lines]) if lines else ""


def _load(path: Path) -> Desk:
    try:
        return Desk.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Desk()
    except (OSError, ValidationError) as error:
        _log.warning("the workspace %s can not be read: %s", path.name, type(error).__name__)
        return Desk()
