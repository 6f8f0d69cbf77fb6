"""The tool that writes the memory into files a person can read, edit and keep."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from annabelle.core.memory import Trust
from annabelle.servers.kit import Result, StopSign, current_call, deferred_module, tool
from annabelle.servers.memory.dates import zone_of
from annabelle.servers.memory.files.places import export_folder
from annabelle.servers.memory.opening import Opening
from annabelle.servers.memory.ownership import owner_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.servers.memory.files import writing
else:
    writing = deferred_module("annabelle.servers.memory.files.writing")


class Exported(Result):
    """Where an export is, and how much is in it."""

    format: Literal["markdown", "json"]
    folder: str
    files: list[str] = Field(description="Paths within the folder")
    counts: dict[str, int] = Field(description="How many rows of each kind")
    trust: Trust = "trusted"

    def text(self) -> str:
        counts = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in self.counts.items())
        shown = ", ".join(self.files[:8]) + (", …" if len(self.files) > 8 else "")
        return f"Exported {counts} to {self.folder}: {shown}."


class ExportTools:
    """export_memory."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._one_at_a_time = asyncio.Lock()

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def export_memory(
        self,
        agent_id: Annotated[
            str | None, Field(description="The agent whose memory is meant; leave it out for your own")
        ] = None,
        format: Annotated[
            Literal["markdown", "json"],
            Field(description="markdown makes pages to read and edit, json one file that holds everything"),
        ] = "markdown",
        include_conversations: Annotated[bool, Field(description="Also what was said, month by month")] = True,
    ) -> Exported:
        """Write everything that is remembered into files in the user's export folder. import_memory reads them again,
        also after they were edited. The files of an earlier export are replaced."""
        owner = owner_of(current_call(), agent_id)
        config = self._opening.config
        folder, zone, sign = export_folder(config, owner), zone_of(config.timezone), StopSign()

        def write(connection: Connection) -> Exported:
            work = writing.Writing(connection, owner, folder, zone, sign)
            if format == "json":
                work.document(include_conversations)
            else:
                work.pages(include_conversations)
            files = [str(path.relative_to(folder)) for path in work.files]
            return Exported(format=format, folder=str(folder), files=files, counts=work.counts)

        library = await self._opening.library()
        async with self._one_at_a_time:
            try:
                return await library.database.read(write)
            except asyncio.CancelledError:
                sign.raise_it()
                raise
