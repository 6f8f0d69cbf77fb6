"""Full text on PostgreSQL: English stems and unstemmed words in one GIN index."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sqlalchemy import Connection, text

from annabelle.store.memory.owner import Owner, SearchKind
from annabelle.store.memory.query_parts import CONTEXT_WEIGHT, SearchTerm

TABLES = [
    "CREATE TABLE text_index (kind text NOT NULL, row_id bigint NOT NULL, user_id text NOT NULL,"
    " agent_id text NOT NULL, text text NOT NULL, found tsvector NOT NULL,"
    " CONSTRAINT pk_text_index PRIMARY KEY (kind, row_id))",
    "CREATE INDEX ix_text_index_user_id_agent_id ON text_index (user_id, agent_id, kind)",
    "CREATE INDEX ix_text_index_found ON text_index USING gin (found)",
]

_COUNTED = 20_000  # enough to know that a word is common
_RANK_WEIGHTS = f"'{{{CONTEXT_WEIGHT}, 1, 1, 1}}'"

_put = text(
    "INSERT INTO text_index (kind, row_id, user_id, agent_id, text, found) VALUES (:kind, :row_id, :user_id, :agent_id,"
    " :text, setweight(to_tsvector('english', :text) || to_tsvector('simple', :text), 'A')"
    " || setweight(to_tsvector('simple', :around), 'D'))"
    " ON CONFLICT (kind, row_id) DO UPDATE SET user_id = excluded.user_id, agent_id = excluded.agent_id,"
    " text = excluded.text, found = excluded.found"
)
_drop = text("DELETE FROM text_index WHERE kind = :kind AND row_id = ANY(:row_ids)")
_owned = "user_id = :user_id AND agent_id = :agent_id AND kind = :kind"
_total = text(f"SELECT count(*) FROM text_index WHERE {_owned}")  # noqa: S608
_count = text(
    "SELECT count(*) FROM (SELECT 1 FROM text_index WHERE kind = :kind"
    " AND found @@ (plainto_tsquery('english', :word) || plainto_tsquery('simple', :word)) LIMIT :most) AS counted"
)
_substring = text(
    f"SELECT row_id FROM text_index WHERE {_owned} AND strpos(text, :wanted) > 0"  # noqa: S608
    " ORDER BY row_id DESC LIMIT :limit"
)


def put(connection: Connection, kind: SearchKind, owner: Owner, row_id: int, text: str, around: str) -> None:
    connection.execute(_put, {"kind": kind, **owner.columns(), "row_id": row_id, "text": text, "around": around})


def drop(connection: Connection, kind: SearchKind, row_ids: Sequence[int]) -> None:
    connection.execute(_drop, {"kind": kind, "row_ids": list(row_ids)})


def terms(connection: Connection, kind: SearchKind, words: Sequence[str]) -> list[SearchTerm]:
    def count(word: str) -> int:
        return int(connection.execute(_count, {"kind": kind, "word": word, "most": _COUNTED}).scalar_one())

    return [SearchTerm(word, count(word)) for word in words]


def find(
    connection: Connection, kind: SearchKind, owner: Owner, wanted: Sequence[SearchTerm], limit: int
) -> list[tuple[int, float]]:
    values: dict[str, object] = {**owner.columns(), "kind": kind}
    total = int(connection.execute(_total, values).scalar_one())
    values["limit"] = limit
    ranks: list[str] = []
    for n, term in enumerate(wanted):
        # ts_rank ignores how rare a word is, which matters most in BM25.
        values |= {f"word{n}": term.word, f"weight{n}": _rarity(total, term.frequency)}
        ranks.append(f"CAST(:weight{n} AS real) * ts_rank({_RANK_WEIGHTS}, found, {_query(n)}, 1)")
    any_word = " || ".join(_query(n) for n in range(len(wanted)))
    statement = (
        f"SELECT row_id, {' + '.join(ranks)} AS score FROM text_index WHERE {_owned} AND found @@ ({any_word})"  # noqa: S608
        " ORDER BY score DESC, row_id DESC LIMIT :limit"
    )
    return [(int(row[0]), float(row[1])) for row in connection.execute(text(statement), values)]


def substring(connection: Connection, kind: SearchKind, owner: Owner, wanted: str, limit: int) -> list[int]:
    values = {**owner.columns(), "kind": kind, "wanted": wanted, "limit": limit}
    return [int(row[0]) for row in connection.execute(_substring, values)]


def _rarity(total: int, frequency: int) -> float:
    return math.log(1 + (max(total - frequency, 0) + 0.5) / (frequency + 0.5))


def _query(n: int) -> str:
    return f"(plainto_tsquery('english', :word{n}) || plainto_tsquery('simple', :word{n}))"
