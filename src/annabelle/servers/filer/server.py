"""Builds the filer server."""

from __future__ import annotations

from annabelle.servers.filer.info import FileGrantTools, FileInfoTools
from annabelle.servers.filer.operations import FileOperations
from annabelle.servers.filer.read import FileReadTools
from annabelle.servers.filer.search import FileSearchTools
from annabelle.servers.filer.write import FileMoveTools, FileWriteTools
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.config import FilesConfig

INSTRUCTIONS = (
    "Files of the user's workspace. Relative paths are in the workspace; absolute paths work only where the user has "
    "granted them. Overwritten and deleted files are kept in temp/ for some days."
)


def build(config: FilesConfig | None = None) -> ToolServer:
    """Build the filer with all its tools; raises for invalid settings."""
    operations = FileOperations(config or FilesConfig.from_environment())
    groups = [
        FileWriteTools(operations),
        FileReadTools(operations),
        FileMoveTools(operations),
        FileSearchTools(operations),
        FileGrantTools(operations),
        FileInfoTools(operations),
    ]
    return ToolServer("filer", groups, instructions=INSTRUCTIONS)
