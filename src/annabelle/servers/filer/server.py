"""Puts the filer together."""

from __future__ import annotations

from annabelle.servers.filer.desk import Desk
from annabelle.servers.filer.granting import Granting
from annabelle.servers.filer.moving import Moving
from annabelle.servers.filer.overview import Overview
from annabelle.servers.filer.reading import Reading
from annabelle.servers.filer.searching import Searching
from annabelle.servers.filer.writing import Writing
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.config import FilesConfig

INSTRUCTIONS = (
    "Files of the user's workspace. Relative paths are in the workspace; absolute paths work only where the user has "
    "granted them. Overwritten and deleted files are kept in temp/ for some days."
)


def build(config: FilesConfig | None = None) -> ToolServer:
    """The filer with all its tools, ready to serve; what is wrong with its settings is said here."""
    desk = Desk(config or FilesConfig.from_environment())
    groups = [Writing(desk), Reading(desk), Moving(desk), Searching(desk), Granting(desk), Overview(desk)]
    return ToolServer("filer", groups, instructions=INSTRUCTIONS)
