"""Builds the notes server."""

from __future__ import annotations

from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.kit.overflow import Overflow
from annabelle.servers.notes.notes import NoteTools
from annabelle.servers.notes.notes_folder import NotesFolder
from annabelle.servers.notes.todos import TodoTools

INSTRUCTIONS = (
    "Notes and to-do lists of the user, kept as Markdown in Notes/ of the workspace, where people edit them too. What "
    "is replaced or deleted is kept in temp/ for some days."
)


def build(config: FilesConfig | None = None) -> ToolServer:
    config = config or FilesConfig.from_environment()
    folder = NotesFolder(config)
    groups = [NoteTools(folder, Overflow(Workspace(config))), TodoTools(folder)]
    return ToolServer("notes", groups, instructions=INSTRUCTIONS)
