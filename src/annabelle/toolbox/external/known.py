"""Remembers which servers there were, so that a start can say what came and went (EXT-04)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from annabelle.core.home import write_atomically

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerDiff:
    """Servers that are new, and servers that are gone, since the last look."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def sentence(self) -> str:
        parts = [
            f"{title}: {', '.join(names)}."
            for title, names in (("New servers", self.added), ("Servers that are gone", self.removed))
            if names
        ]
        return " ".join(parts)


class KnownServers:
    """The file `last-known-mcps.json`. A first start has nothing to compare with, and reports nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def compare(self, names: Iterable[str]) -> ServerDiff:
        now = set(names)
        before = self._load()
        if before is None:
            return ServerDiff()
        return ServerDiff(tuple(sorted(now - before)), tuple(sorted(before - now)))

    def remember(self, names: Iterable[str]) -> None:
        wanted = sorted(names)
        if self._load() == set(wanted):
            return
        try:
            write_atomically(self._path, json.dumps({"servers": wanted}, indent=2) + "\n")
        except OSError as error:
            _log.warning("%s could not be written: %s", self._path.name, error.strerror)

    def _load(self) -> set[str] | None:
        try:
            parsed: object = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        names = cast("dict[str, object]", parsed).get("servers") if isinstance(parsed, dict) else None
        if not isinstance(names, list):
            return None
        return {name for name in cast("list[object]", names) if isinstance(name, str)}
