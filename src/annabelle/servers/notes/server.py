"""Puts the notes server together."""

from __future__ import annotations

from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.kit.overflow import Overflow
from annabelle.servers.notes.notes import Notes
from annabelle.servers.notes.shelf import Shelf
from annabelle.servers.notes.todos import Todos

INSTRUCTIONS = (
    "Notes and to-do lists of the user, kept as Markdown in Notes/ of the workspace, where people edit them too. What "
    "is replaced or deleted is kept in temp/ for some days."
)


def build(config: FilesConfig | None = None) -> ToolServer:
    """All tools for notes and lists, ready to serve."""
    config = config or FilesConfig.from_environment()
    shelf = Shelf(config)
    groups = [Notes(shelf, Overflow(Workspace(config))), Todos(shelf)]
    return ToolServer("notes", groups, instructions=INSTRUCTIONS)
