"""Which files of a home are whose: Annabelle's records, copies of them, or the person's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from annabelle.core.home import Home

Treatment = Literal["lines", "copy", "export", "own"]

_DATABASE = (".db", ".db-wal", ".db-shm", ".db-journal", ".lock")
_COPY = (".replaced", ".damaged-", ".restored")
_SECRETS = ("annabelle.token", "forgetting.json", "forgotten.jsonl")
# Key, head, torn lines and files of the audit. No content ever gets in, and a masked line would break its chain.
_AUDIT = "audit"

# What an agent has in hand, per thread: one JSON record in each file.
_WORKSPACES = "workspaces"

# Where servers keep what was too long to show; see `servers/kit/files/layout.py`.
_RESULTS = Path("temp", "results")


@dataclass(frozen=True, slots=True)
class Found:
    """A file, what is done with it, and under which name a person sees it."""

    path: Path
    treatment: Treatment
    place: str


class Places:
    """The files of one home. Databases and the cache of vectors are left out: their owners see to them."""

    def __init__(self, home: Home, export: Path | None = None, workspace: Path | None = None) -> None:
        self._home = home
        self._export, self._workspace = export or home.memory_export, workspace or home.workspace

    def databases(self) -> list[Path]:
        """The files of the databases in use, with their journals."""
        home = self._home
        files = [home.database_file, home.flows_file, home.memory_file, *home.agents.glob("*/turns.db")]
        return [path for file in files for path in (file, file.with_name(f"{file.name}-wal")) if path.is_file()]

    def files(self) -> Iterator[Found]:
        """Every file but the person's own."""
        yield from (Found(path, "export", "exports") for path in _walk(self._export))
        # What tools answered at length and what a browser remembers are copies: a file that holds the text goes whole.
        yield from (Found(path, "copy", "results") for path in _walk(self._workspace / _RESULTS))
        yield from (Found(path, "copy", "browser") for path in _walk(self._home.browser_profiles))
        home, seen = self._home, (self._export, self._workspace, self._home.browser_profiles, *self._of_servers())
        skipped = {home.models, home.embedding_cache, home.skills, home.playbooks, home.config, home.connections, *seen}
        for path in _walk(home.root, skipped):
            found = self._classified(path)
            if found is not None:
                yield found

    def own(self) -> Iterator[Path]:
        """What belongs to the person: it is named and never touched."""
        home = self._home
        results = self._workspace / _RESULTS
        for folder in (
            self._workspace,
            home.config,
            home.skills,
            home.playbooks,
            home.connections,
            *self._of_servers(),
        ):
            yield from (path for path in _walk(folder, {self._export, results}))
        yield from home.agents.glob("*/*.md")
        yield from (path for path in (home.good_agents_file,) if path.is_file())

    def _of_servers(self) -> list[Path]:
        """What servers keep for the person: scripts, mail filters, feeds. Each folder of the data is a server's."""
        home = self._home
        folders = (path for path in sorted(home.data.glob("*/")) if path.is_dir())
        return [path for path in folders if path not in (home.embedding_cache, home.browser_profiles)]

    def _classified(self, path: Path) -> Found | None:
        home, name = self._home, path.name
        if any(mark in name for mark in _COPY) or path.is_relative_to(home.backups):
            return Found(path, "copy", "backups")
        if path.is_relative_to(home.agents) and path.parent.name == _WORKSPACES:
            return Found(path, "lines", "workspaces")
        if name.endswith(_DATABASE) or name in _SECRETS or name.endswith((".json", ".md", ".pid", ".sock")):
            return None
        if name.startswith(_AUDIT) and path.parent in (home.logs, home.data):
            return None
        if path.is_relative_to(home.agents):
            return Found(path, "lines", "sessions")
        if path == home.history_file:
            return Found(path, "lines", "terminal history")
        return Found(path, "lines", "traces" if name.startswith(home.traces_file.name) else "logs")


def _walk(root: Path, skipped: set[Path] | None = None) -> Iterator[Path]:
    """Plain files below a folder; links are not followed, because what they lead to is not ours."""
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if here / name not in (skipped or set()))
        for name in sorted(names):
            path = here / name
            if path.is_file() and not path.is_symlink():
                yield path
