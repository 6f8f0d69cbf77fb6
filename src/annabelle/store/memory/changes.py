"""Changes made to many facts at once, kept so that each can be undone in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from sqlalchemy import Connection, RowMapping, insert, select, update

from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.tables import changes

_columns = changes.c


@dataclass(frozen=True, slots=True)
class Done:
    """One part of a change: the facts it retired, and the one it made of them, if it made one."""

    kind: str
    retired: tuple[int, ...]
    made: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """What was done, and whether it was undone."""

    id: int
    kind: str
    summary: str
    done: tuple[Done, ...]
    made_at: datetime
    undone_at: datetime | None

    @property
    def retired(self) -> list[int]:
        return [fact_id for part in self.done for fact_id in part.retired]

    @property
    def made(self) -> list[int]:
        return [part.made for part in self.done if part.made is not None]


def add(connection: Connection, owner: Owner, kind: str, summary: str, done: Sequence[Done]) -> Change:
    """Note a change, in the transaction that makes it."""
    actions = [
        {"kind": part.kind, "retired": list(part.retired), "made": part.made, "reason": part.reason} for part in done
    ]
    values: dict[str, object] = {
        **owner.columns(),
        "kind": kind,
        "summary": summary,
        "actions": actions,
        "made_at": now(),
        "undone_at": None,
    }
    return _change(connection.execute(insert(changes).values(values).returning(changes)).mappings().one())


def get(connection: Connection, owner: Owner, change_id: int) -> Change | None:
    """One change; None when there is none of this number, or it is somebody else's."""
    row = connection.execute(select(changes).where(owner.of(changes), _columns.id == change_id)).mappings().first()
    return None if row is None else _change(row)


def last(connection: Connection, owner: Owner) -> Change | None:
    """The latest change that was not undone."""
    query = select(changes).where(owner.of(changes), _columns.undone_at.is_(None)).order_by(_columns.id.desc()).limit(1)
    row = connection.execute(query).mappings().first()
    return None if row is None else _change(row)


def listing(connection: Connection, owner: Owner, limit: int = 20) -> list[Change]:
    """Changes, the newest first."""
    query = select(changes).where(owner.of(changes)).order_by(_columns.id.desc()).limit(limit)
    return [_change(row) for row in connection.execute(query).mappings()]


def mark_undone(connection: Connection, owner: Owner, change_id: int) -> None:
    connection.execute(update(changes).where(owner.of(changes), _columns.id == change_id).values(undone_at=now()))


def _change(row: RowMapping) -> Change:
    return Change(
        id=row["id"],
        kind=row["kind"],
        summary=row["summary"],
        done=tuple(_done(part) for part in cast("list[JsonObject]", row["actions"])),
        made_at=row["made_at"],
        undone_at=row["undone_at"],
    )


def _done(part: JsonObject) -> Done:
    retired, made = cast("list[int]", part.get("retired") or []), cast("int | None", part.get("made"))
    return Done(str(part.get("kind") or ""), tuple(retired), made, str(part.get("reason") or ""))
