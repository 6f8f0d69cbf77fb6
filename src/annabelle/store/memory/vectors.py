"""Vectors of facts and conversations, and the passages of a long text that each get one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, delete, exists, func, select

from annabelle.store.memory.owner import Owner, SearchKind
from annabelle.store.memory.tables import conversations, facts, vectors
from annabelle.store.portable_sql import InsertOrUpdate

BLOCK_ROWS = 4096
_IDS_AT_ONCE = 500
_ROWS: dict[SearchKind, Table] = {"fact": facts, "conversation": conversations}

_upsert_vector = InsertOrUpdate(
    vectors, ("kind", "row_id"), changed=("user_id", "agent_id", "model", "dimension", "vector")
)
_delete = delete(vectors).where(vectors.c.kind == bindparam("of"), vectors.c.row_id == bindparam("at"))


@dataclass(frozen=True, slots=True)
class VectorBlock:
    """Vectors of one owner as consecutive float32. `row_ids` names the row of each; those of one row are adjacent."""

    kind: SearchKind
    owner: Owner
    dimension: int
    row_ids: list[int]
    data: bytes


def store_vector(
    connection: Connection, kind: SearchKind, owner: Owner, row_id: int, model: str, vector: bytes, dimension: int
) -> None:
    store_vectors(connection, kind, model, dimension, [(owner, row_id, vector)])


def store_vectors(
    connection: Connection, kind: SearchKind, model: str, dimension: int, rows: Sequence[tuple[Owner, int, bytes]]
) -> None:
    """Stores the vectors of many rows; ValueError for a wrong length."""
    if not all(_is_whole(vector, dimension) for _, _, vector in rows):
        raise ValueError(f"A vector of {model} does not have {dimension} dimensions.")
    if not rows:
        return
    same = {"kind": kind, "model": model, "dimension": dimension}
    _upsert_vector(
        connection, [{**same, **owner.columns(), "row_id": row_id, "vector": vector} for owner, row_id, vector in rows]
    )


def remove_vectors(connection: Connection, kind: SearchKind, row_ids: Iterable[int]) -> None:
    """Deletes the vectors of rows; ignores rows without any."""
    gone = [{"of": kind, "at": row_id} for row_id in row_ids]
    if gone:
        connection.execute(_delete, gone)


def get_vectors(connection: Connection, kind: SearchKind, row_ids: Sequence[int], model: str) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for start in range(0, len(row_ids), _IDS_AT_ONCE):
        ids = row_ids[start : start + _IDS_AT_ONCE]
        query = select(vectors.c.row_id, vectors.c.vector).where(
            vectors.c.kind == kind, vectors.c.model == model, vectors.c.row_id.in_(ids)
        )
        found |= {row[0]: bytes(row[1]) for row in connection.execute(query)}
    return found


def load_blocks(connection: Connection, model: str, rows: int = BLOCK_ROWS) -> Iterator[VectorBlock]:
    """Yields all vectors of a model, in blocks of one owner, kind and dimension, unordered."""
    columns = vectors.c
    # Unordered: sorting would write every vector to a temporary file first.
    query = select(
        columns.kind, columns.user_id, columns.agent_id, columns.dimension, columns.row_id, columns.vector
    ).where(columns.model == model)
    result = connection.execution_options(yield_per=rows).execute(query)
    for part in result.partitions():
        blocks: dict[tuple[SearchKind, str, str, int], list[tuple[int, bytes]]] = {}
        for kind, user_id, agent_id, dimension, row_id, vector in part:
            if _is_whole(vector, dimension):
                blocks.setdefault((kind, user_id, agent_id, dimension), []).append((row_id, vector))
        for (kind, user_id, agent_id, dimension), found in blocks.items():
            data = b"".join(vector for _, vector in found)
            ids = [row_id for row_id, vector in found for _ in range(len(vector) // (4 * dimension))]
            yield VectorBlock(kind, Owner(user_id, agent_id), dimension, ids, data)


def list_missing(
    connection: Connection,
    model: str,
    kind: SearchKind,
    *,
    after: int = 0,
    limit: int = 100,
    owner: Owner | None = None,
) -> list[tuple[int, Owner]]:
    """Lists searchable rows without a vector of this model, with their owners, by id."""
    columns = _ROWS[kind].c
    query = (
        select(columns.id, columns.user_id, columns.agent_id)
        .where(_lacks_vector(kind, model), columns.id > after)
        .order_by(columns.id)
        .limit(limit)
    )
    if owner is not None:
        query = query.where(owner.row_filter(_ROWS[kind]))
    return [(row[0], Owner(row[1], row[2])) for row in connection.execute(query)]


def count_missing(connection: Connection, model: str, kind: SearchKind, owner: Owner | None = None) -> int:
    query = select(func.count()).select_from(_ROWS[kind]).where(_lacks_vector(kind, model))
    return connection.execute(query if owner is None else query.where(owner.row_filter(_ROWS[kind]))).scalar_one()


def count_vectors(
    connection: Connection, model: str, kind: SearchKind | None = None, owner: Owner | None = None
) -> int:
    query = select(func.count()).select_from(vectors).where(vectors.c.model == model)
    if kind is not None:
        query = query.where(vectors.c.kind == kind)
    return connection.execute(query if owner is None else query.where(owner.row_filter(vectors))).scalar_one()


def _is_whole(vector: bytes, dimension: int) -> bool:
    return len(vector) > 0 and len(vector) % (4 * dimension) == 0


def _lacks_vector(kind: SearchKind, model: str) -> ColumnElement[bool]:
    table = _ROWS[kind]
    has = exists().where(vectors.c.kind == kind, vectors.c.row_id == table.c.id, vectors.c.model == model)
    return ~has if kind == "conversation" else and_(~has, table.c.retired_at.is_(None))


PIECE_CHARACTERS = 120
MOST_PIECES = 8
READ_CHARACTERS = 20_000
"""Only this much of a longer text is embedded."""

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")


def split_passages(kind: SearchKind, text: str) -> list[str]:
    """Returns the texts to embed for a row, at least one: a fact as a whole, a turn in pieces of about a sentence."""
    text = text[:READ_CHARACTERS]
    if kind == "fact":
        return [text]
    room = max(PIECE_CHARACTERS, -(-len(text) // MOST_PIECES))
    pieces: list[str] = []
    for sentence in filter(None, map(str.strip, _SENTENCE_END.split(text))):
        fits = bool(pieces) and len(pieces[-1]) + len(sentence) < room
        if fits or len(pieces) == MOST_PIECES:
            pieces[-1] = f"{pieces[-1]} {sentence}"
        else:
            pieces.append(sentence)
    return pieces or [text]
