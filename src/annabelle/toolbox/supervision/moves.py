"""Notes in the audit how servers come and go."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.ports import Audit
from annabelle.toolbox.status import ServerState


@dataclass(frozen=True, slots=True)
class ServerMoves:
    """Told of every move in the life of a server."""

    audit: Audit | None

    def __call__(self, name: str, state: ServerState) -> None:
        if self.audit is not None:
            self.audit.note("server", {"event": state, "server": name})
