"""The folders of the workspace, and the names that mean something in it."""

from __future__ import annotations

FOLDERS = (
    "Documents",
    "Notes",
    "Code/python",
    "Code/node",
    "Code/bash",
    "Data",
    "Images",
    "Media",
    "Downloads",
    "Exports",
    "temp",
)
"""Made in the workspace at first use."""

TEMP = "temp"
BACKUPS = "temp/backups"
TRASH = "temp/trash"
RESULTS = "temp/results"
"""Where the rest of a result that was too long to show is kept for some days."""
SCRIPTS = ("Code", "bash")
"""The one folder in which shell scripts may be made."""

PART_PREFIX = ".part-"
"""Begins the name of a file that is still being written."""
