"""A fact as it is shown. What others may have written is quoted, so that a model reads it as data (MEM-09)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.memory import FactCategory, Trust
from annabelle.core.tools import JsonObject

if TYPE_CHECKING:
    from annabelle.store.memory.facts import Fact


class FactRow(BaseModel):
    """A fact of a result."""

    model_config = ConfigDict(frozen=True)

    id: int
    fact: str
    category: FactCategory
    confidence: float
    source: str
    trust: Trust
    learnt_from: list[str] = Field(description="Tools whose output it may stem from, when it is untrusted")
    valid_from: datetime
    valid_until: datetime | None
    created_at: datetime
    updated_at: datetime
    retired_at: datetime | None
    retired_because: Literal["superseded", "merged", "deleted"] | None
    superseded_by: int | None

    def line(self) -> str:
        """One line for a model or a person: `12 [background] …`."""
        return fact_line(self)


def fact_row(fact: Fact) -> FactRow:
    return FactRow(
        id=fact.id,
        fact=fact.fact,
        category=fact.category,
        confidence=round(fact.confidence, 3),
        source=fact.source,
        trust=fact.trust,
        learnt_from=learnt_from(fact.origin) if fact.trust == "untrusted" else [],
        valid_from=fact.valid_from,
        valid_until=fact.valid_until,
        created_at=fact.created_at,
        updated_at=fact.updated_at,
        retired_at=fact.retired_at,
        retired_because=fact.retired_because,
        superseded_by=fact.superseded_by,
    )


def fact_rows(facts: Iterable[Fact]) -> list[FactRow]:
    return [fact_row(fact) for fact in facts]


def learnt_from(origin: JsonObject) -> list[str]:
    """The tools named by an origin."""
    tools = origin.get("tools")
    return [name for name in cast("list[object]", tools) if isinstance(name, str)] if isinstance(tools, list) else []


def fact_line(fact: FactRow | Fact) -> str:
    """`12 [background] …`, or `12 [background, untrusted: learnt from searcher_web_fetch] "…"`."""
    row = fact if isinstance(fact, FactRow) else fact_row(fact)
    marks: list[str] = [row.category]
    if row.trust == "untrusted":
        marks.append(f"untrusted: learnt from {', '.join(row.learnt_from) or 'content others wrote'}")
    if row.retired_because == "deleted":
        marks.append("deleted")
    elif row.retired_because is not None:
        marks.append(f"{row.retired_because} by {row.superseded_by}" if row.superseded_by else row.retired_because)
    text = row.fact if row.trust == "trusted" else json.dumps(row.fact, ensure_ascii=False)
    return f"{row.id} [{', '.join(marks)}] {text}"
