"""Long text in short results: the beginning is shown, the whole is kept as a file that other tools can read."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from annabelle.core.errors import AnnabelleError
from annabelle.servers.kit.files.atomic_write import make_stamp
from annabelle.servers.kit.files.paths import RESULTS
from annabelle.servers.kit.files.workspace import Workspace

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShownText:
    """The text that fits, the full length, and the workspace path of the full text if it was cut."""

    text: str
    total_chars: int
    rest: str | None = None


class Overflow:
    """Cuts text to what a model should read at once. The rest is kept for some days in `temp/results`."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def show_text(self, text: str, limit: int, name: str) -> ShownText:
        """`name` says what it is, with its ending: `page.md`, `output.txt`."""
        if len(text) <= limit:
            return ShownText(text, len(text))
        try:
            kept = await self._workspace.keep(RESULTS, f"{make_stamp()}-{name}", text.encode(errors="replace"))
        except AnnabelleError as error:
            _log.warning("The rest of a long result could not be kept: %s", error.message)
            return ShownText(text[:limit], len(text))
        return ShownText(text[:limit], len(text), kept.path)
