"""Looks a question's words up in the index: all of them in a small memory, the rarest in a large one."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from annabelle.store.memory import text_index
from annabelle.store.memory.owner import Kind, Owner
from annabelle.store.memory.text_index import Term

READ_AT_MOST = 1_500
"""Places of words that one search reads: past that a word is so common here that it tells little and costs much."""


def look_up(
    connection: Connection,
    kind: Kind,
    owner: Owner,
    words: Sequence[str],
    limit: int,
    among: set[int] | None = None,
) -> dict[int, float]:
    """Rows that hold the telling words, with their scores, best first."""
    chosen = telling(text_index.terms(connection, kind, words))
    if among is None:
        return dict(text_index.find(connection, kind, owner, chosen, limit))
    # The index knows nothing of categories and days, so enough is asked for to find those that fit.
    found = text_index.find(connection, kind, owner, chosen, limit * 20)
    return dict([hit for hit in found if hit[0] in among][:limit])


def telling(terms: Sequence[Term]) -> list[Term]:
    """The rarest words, as many as may be read; the rarest of all in any case."""
    chosen: list[Term] = []
    total = 0
    for term in sorted((term for term in terms if term.frequency), key=lambda term: term.frequency):
        total += term.frequency
        if chosen and total > READ_AT_MOST:
            break
        chosen.append(term)
    return chosen
