"""The tool that installs a package."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.codexec.languages import SessionLanguage
from annabelle.servers.codexec.packages.installer import Installer
from annabelle.servers.codexec.packages.names import checked
from annabelle.servers.codexec.sessions.room import Room
from annabelle.servers.codexec.workshop import Workshop, whose
from annabelle.servers.kit import Result, in_thread, tool


class Installed(Result):
    """A package that can be used from now on."""

    package: str
    language: str
    session_id: str | None = Field(default=None, description="The session that has it; null: all your later runs")

    def text(self) -> str:
        where = "all later runs" if self.session_id is None else f"session {self.session_id}"
        return f"{self.package} is installed for {where}."


class PackageTools:
    """install_package."""

    def __init__(self, workshop: Workshop, room: Room, installer: Installer) -> None:
        self._workshop = workshop
        self._room = room
        self._installer = installer

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def install_package(
        self,
        language: Annotated[SessionLanguage, Field(description="python or node")],
        package: Annotated[
            str, Field(max_length=300, description="Name, with a version if it matters: requests==2.32.0, lodash@4.17")
        ],
        session_id: Annotated[
            str | None, Field(max_length=200, description="Only for this session; by default for all your runs")
        ] = None,
    ) -> Installed:
        """Install a package from PyPI or npm for code you run later, or for one open session."""
        wanted = checked(language, package)
        if session_id is None:
            target = await in_thread(lambda stop: self._workshop.folders.of_agent(whose()))
            await self._installer.install(language, [wanted], target)
            return Installed(package=wanted, language=language)
        session = self._room.find(session_id)
        if session.language != language:
            raise InvalidArguments(f"Session {session.id} speaks {session.language}.", field="language")
        await self._installer.install(language, [wanted], session.packages)
        session.touch()
        return Installed(package=wanted, language=language, session_id=session.id)
