"""Where a piece of code works: a private folder of its own, or a folder of the workspace that the caller named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from annabelle.servers.codexec.artifacts import Artifacts, Seen, changed, kept, survey
from annabelle.servers.codexec.disk import Disk
from annabelle.servers.codexec.folders import RunFolder
from annabelle.servers.codexec.isolation.layer import WORK, Mount
from annabelle.servers.kit.files.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Bench:
    """The folder code works in. `shown` is how the caller named it; None for a private one."""

    run: RunFolder
    folder: Path
    shown: str | None

    @property
    def mount(self) -> Mount:
        """A folder of the workspace is seen at its own place, so that paths in it mean the same inside and outside."""
        return Mount(self.folder, WORK if self.shown is None else str(self.folder), writable=True)

    def disk(self, most_bytes: int) -> Disk | None:
        return Disk(self.folder, most_bytes) if self.shown is None else None

    async def before(self) -> Seen:
        return await survey(self.folder)

    async def made_since(self, before: Seen, workspace: Workspace) -> Artifacts:
        if self.shown is None:
            return await kept(self.folder, before, workspace)
        return await changed(self.folder, before, self.shown)
