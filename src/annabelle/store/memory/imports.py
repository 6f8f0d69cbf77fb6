"""Imports under way: rows are put aside batch by batch and taken in all at once. A kill leaves all or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, delete, func, select, update

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import import_rows, imports
from annabelle.store.statements import InsertNew

KEPT = timedelta(days=7)
"""An import nobody goes on with is dropped after this."""

_PAGE = 500
_insert = InsertNew(imports, ("user_id", "agent_id", "digest"))
_stage = InsertNew(import_rows)


@dataclass(frozen=True, slots=True)
class Import:
    """One file on its way in."""

    id: int
    total: int
    staged: int
    finished: bool


def begin(connection: Connection, owner: Owner, digest: str, name: str, total: int) -> Import:
    """Begin to import a file, or go on with it. One that was finished begins anew: the memory may have changed."""
    at = now()
    stale = (owner.of(imports), imports.c.finished.is_(False), imports.c.digest != digest)
    connection.execute(delete(imports).where(*stale, imports.c.begun_at < at - KEPT))
    new = {"digest": digest, "name": name, "total": total, "begun_at": at, "finished": False}
    _insert.one(connection, {**owner.columns(), **new})
    found = get(connection, owner, digest)
    if found.finished:
        connection.execute(update(imports).where(imports.c.id == found.id).values(**new))
        connection.execute(delete(import_rows).where(import_rows.c.import_id == found.id))
        found = get(connection, owner, digest)
    return found


def get(connection: Connection, owner: Owner, digest: str) -> Import:
    """How far an import is, held until the transaction ends."""
    query = select(imports).where(owner.of(imports), imports.c.digest == digest)
    row = connection.execute(query.with_for_update()).mappings().one()
    staged = select(func.count()).select_from(import_rows).where(import_rows.c.import_id == row["id"])
    return Import(row["id"], row["total"], connection.execute(staged).scalar_one(), row["finished"])


def stage(connection: Connection, import_id: int, start: int, rows: Sequence[JsonObject]) -> None:
    """Put rows aside under their numbers; those that are there already stay."""
    for offset in range(0, len(rows), _PAGE):
        part = rows[offset : offset + _PAGE]
        numbered = enumerate(part, start + offset)
        _stage.many(connection, [{"import_id": import_id, "number": number, "row": row} for number, row in numbered])


def staged(connection: Connection, import_id: int) -> Iterator[object]:
    """The rows that were put aside, in their order."""
    after = -1
    while True:
        query = select(import_rows.c.number, import_rows.c.row).where(
            import_rows.c.import_id == import_id, import_rows.c.number > after
        )
        page = connection.execute(query.order_by(import_rows.c.number).limit(_PAGE)).all()
        for number, row in page:
            after = number
            yield row
        if len(page) < _PAGE:
            return


def finish(connection: Connection, import_id: int) -> None:
    """All of it is in: what was put aside goes, and that it was done stays known."""
    connection.execute(delete(import_rows).where(import_rows.c.import_id == import_id))
    connection.execute(update(imports).where(imports.c.id == import_id).values(finished=True))


def abandon(connection: Connection, import_id: int) -> None:
    """Nothing of it will come in."""
    connection.execute(delete(imports).where(imports.c.id == import_id))
