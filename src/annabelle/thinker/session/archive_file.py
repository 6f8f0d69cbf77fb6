"""The conversations of one thread that ended, one line each. Their turns stay on disk until somebody searches them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from annabelle.core import jsonl
from annabelle.core.tools import JsonObject
from annabelle.thinker.session.records import Archive, read_as


class ArchiveFile:
    """Reads anew each time: who asks often keeps what was read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, archive: Archive) -> None:
        """Append it, on disk when this returns; the same conversation again changes nothing."""
        if not self.holds(archive.id):
            jsonl.append(self._path, [archive.line()])
            jsonl.sync_folder(self._path.parent)

    def holds(self, archive_id: str) -> bool:
        return any(archive.id == archive_id for archive in self._all())

    def entries(self) -> list[Archive]:
        """Without their turns."""
        return [archive.model_copy(update={"turns": []}) for archive in self._all()]

    def turns(self) -> dict[str, list[JsonObject]]:
        return {archive.id: archive.turns for archive in self._all()}

    def _all(self) -> Iterator[Archive]:
        seen: set[str] = set()
        for record in jsonl.load(self._path):
            archive = read_as(Archive, record) if record.get("type") == "archive" else None
            if archive is not None and archive.id not in seen:
                seen.add(archive.id)
                yield archive
