"""The SQLite driver: a modern SQLite with FTS5 in a wheel, instead of whatever the interpreter was linked with."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The same interface, with types.
    import sqlite3 as driver
else:
    import sqlean.dbapi2 as driver

__all__ = ["driver"]
