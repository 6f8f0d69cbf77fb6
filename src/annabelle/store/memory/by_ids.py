"""The condition for rows that are named by their ids and belong to an owner, built once for each statement (I-30).

_get = select(facts).where(named(facts))
connection.execute(_get, naming(owner, ids))
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, Table, and_, bindparam

from annabelle.store.memory.owner import Owner

_HIGHEST = 2**63 - 1


def named(table: Table) -> ColumnElement[bool]:
    """Those of the ids that are the owner's."""
    # Without the empty text SQLite reads all rows of the owner by their index, and then looks for the ids among them.
    return and_(
        table.c.id.in_(bindparam("named_ids", expanding=True)),
        table.c.user_id.concat("") == bindparam("named_user"),
        table.c.agent_id.concat("") == bindparam("named_agent"),
    )


def naming(owner: Owner, ids: Collection[int]) -> dict[str, object]:
    """What such a statement is given. A number no row can have is left out: neither engine would take it."""
    possible = [number for number in ids if 0 < number <= _HIGHEST]
    return {"named_ids": possible, "named_user": owner.user_id, "named_agent": owner.agent_id}
