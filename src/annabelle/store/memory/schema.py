"""How the memory's database is made and brought up to date, beside the hub's or in a file of its own."""

from __future__ import annotations

from sqlalchemy import Connection

from annabelle.store.memory import text_index
from annabelle.store.memory.migrations import FOLDER, NEWEST
from annabelle.store.memory.tables import metadata
from annabelle.store.migrate import Plan


def create_all(connection: Connection) -> None:
    """Every table, and what full text needs on this engine."""
    metadata.create_all(connection)
    text_index.create(connection)


PLAN = Plan(
    newest=NEWEST,
    folder=FOLDER,
    tables=metadata,
    version_table="memory_version",
    create=create_all,
    beside=("text_index",),
    snapshots="memory_backup_",
    way_back="annabelle memory restore",
)
