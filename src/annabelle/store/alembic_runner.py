"""Runs Alembic revisions on a connection. Imported only when a migration is due."""

from __future__ import annotations

from pathlib import Path

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext, RevisionStep
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from annabelle.core.errors import StorageTrouble


def run_alembic(connection: Connection, folder: Path, to: str, version_table: str = "alembic_version") -> None:
    """Upgrades to revision `to` inside the connection's open transaction."""
    script = ScriptDirectory(str(folder))

    def steps(found: tuple[str, ...], _context: MigrationContext) -> list[RevisionStep]:
        # The documented way to drive Alembic without its environment file.
        return script._upgrade_revs(to, found)  # pyright: ignore[reportPrivateUsage, reportReturnType, reportArgumentType]

    context = MigrationContext.configure(
        connection,
        opts={
            "transactional_ddl": True,
            "transaction_per_migration": False,
            "version_table": version_table,
            "fn": steps,
        },
    )
    try:
        with Operations.context(context):
            context.run_migrations()
    except CommandError as error:
        raise StorageTrouble(
            f"The database was written by another version of Annabelle ({error}).",
            hint="Start the newer version, or restore the backup that was made before the upgrade.",
        ) from error


def list_heads(folder: Path) -> list[str]:
    """Returns the newest revisions in a folder; several mean that branches were not merged."""
    return list(ScriptDirectory(str(folder)).get_heads())
