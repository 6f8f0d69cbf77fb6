"""Where what a tool saves goes: under the name a call gives, else under one made from the time."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field

from annabelle.servers.kit.files.parts import stamp
from annabelle.servers.kit.files.workspace import FileKept, Workspace

FileName = Annotated[
    str | None,
    Field(
        description="Save to this new file of the workspace instead of showing it; without it nothing is written",
        max_length=500,
    ),
]


async def keep(workspace: Workspace, filename: str | None, folder: str, ending: str, data: bytes) -> FileKept:
    """A new file; a name that is taken gets a number, so nothing is replaced."""
    path = PurePosixPath((filename or f"page-{stamp()}").replace("\\", "/"))
    name = path.name if path.suffix else f"{path.name or 'page'}{ending}"
    chosen = str(path.parent) if str(path.parent) != "." else folder
    return await workspace.keep(chosen, name, data)
