"""Puts the code server together."""

from __future__ import annotations

from annabelle.servers.codexec.calculating import Calculating
from annabelle.servers.codexec.config import CodeConfig
from annabelle.servers.codexec.executing import Executing
from annabelle.servers.codexec.isolation.choosing import Isolation
from annabelle.servers.codexec.packages.installer import Installer
from annabelle.servers.codexec.packages.tools import PackageTools
from annabelle.servers.codexec.scripts.keeping import Keeping
from annabelle.servers.codexec.scripts.library import Library
from annabelle.servers.codexec.scripts.running import RunningScripts
from annabelle.servers.codexec.sessions.room import Room
from annabelle.servers.codexec.sessions.tools import SessionTools
from annabelle.servers.codexec.workshop import Workshop
from annabelle.servers.kit import ToolServer

INSTRUCTIONS = (
    "Runs Python, Node and Bash in a sandbox without network: once, in a session that remembers, or from the library "
    "of scripts. For plain arithmetic use calculate."
)


def build(config: CodeConfig | None = None, isolation: Isolation | None = None) -> ToolServer:
    """The code server with all its tools; whether code can be kept apart is found out by the first call."""
    workshop = Workshop(config or CodeConfig.from_environment(), isolation)
    room, installer = Room(workshop), Installer(workshop)
    library = Library(workshop.config.data / "scripts")
    keeping = Keeping(workshop, library)
    calculating = Calculating()

    async def close() -> None:
        await room.close()
        await calculating.close()
        workshop.folders.close()

    return ToolServer(
        "codexec",
        [
            Executing(workshop),
            SessionTools(workshop, room),
            PackageTools(workshop, room, installer),
            keeping,
            RunningScripts(workshop, library, keeping, installer),
            calculating,
        ],
        instructions=INSTRUCTIONS,
        on_close=close,
        readiness=workshop.isolation.missing,
    )
