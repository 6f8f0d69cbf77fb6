"""Removes a text from the durable engine's tables (TRU-09)."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

from annabelle.store.engine import vacuum
from annabelle.store.text_removal import TextColumns, TextRemoval

# DBOS's columns that contain our values, all as JSON.
_CONTENT_COLUMNS = frozenset({"inputs", "output", "error", "message", "value", "context", "topic", "attributes"})


def remove_text(engine: Engine, schema: str, sweep: TextRemoval) -> int:
    """Masks the text in every row and returns how many contained it. Workflows continue with what is left."""
    inside = schema if engine.dialect.name == "postgresql" else None
    with engine.begin() as connection:
        return sum(len(sweep.run(connection, cells)) for cells in _find_text_columns(connection, inside))


def vacuum_tables(engine: Engine, schema: str) -> None:
    """Erases what was masked from free pages and the journal."""
    inside = schema if engine.dialect.name == "postgresql" else None
    with engine.begin() as connection:
        tables = [f'"{cells.schema}"."{cells.table}"' for cells in _find_text_columns(connection, inside)]
    vacuum(engine, tables)


def list_schemas(engine: Engine, wanted: Callable[[str], bool]) -> list[str]:
    """Lists the schemas of a PostgreSQL database; each DBOS engine has its own."""
    with engine.begin() as connection:
        return sorted(name for name in sa.inspect(connection).get_schema_names() if wanted(name))


def _find_text_columns(connection: Connection, schema: str | None) -> list[TextColumns]:
    inspector = sa.inspect(connection)
    found: list[TextColumns] = []
    for table in sorted(inspector.get_table_names(schema=schema)):
        columns = tuple(
            column["name"]
            for column in inspector.get_columns(table, schema=schema)
            if column["name"] in _CONTENT_COLUMNS and isinstance(column["type"], sa.Text | sa.String)
        )
        keys = tuple(inspector.get_pk_constraint(table, schema=schema)["constrained_columns"])
        if columns and keys:
            found.append(TextColumns(table, keys, json=columns, schema=schema))
    return found
