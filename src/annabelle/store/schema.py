"""What all tables of the hub have in common."""

from __future__ import annotations

from sqlalchemy import BigInteger, Index, Integer, MetaData, text

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

metadata = MetaData(naming_convention=NAMING)

# SQLite numbers rows only in an INTEGER PRIMARY KEY column.
Counter = BigInteger().with_variant(Integer(), "sqlite")


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))
