"""`GET /audit`: what was done and decided, newest last."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from annabelle.core.tools import JsonObject
from annabelle.core.trust import AuditKind
from annabelle.hub.api.documented import Answer, TheHub, failures
from annabelle.store.audit.places import AuditPlaces
from annabelle.store.audit.reading import Wanted, latest

router = APIRouter(tags=["audit"])


class AuditRecord(Answer):
    """One record. It holds names, numbers and fingerprints, never content."""

    n: int
    at: str
    kind: str
    trace: str | None
    facts: JsonObject
    hash: str = Field(description="Covers the record and the hash of the one before")


class AuditList(Answer):
    records: list[AuditRecord]


@router.get("/audit", operation_id="audit", responses=failures(), summary="What was done and decided")
async def audit(
    hub: TheHub,
    last: Annotated[int, Query(ge=1, le=1000, description="How many of the newest")] = 50,
    kind: Annotated[AuditKind | None, Query(description="Only of this kind")] = None,
) -> AuditList:
    """For the owner. Whether the records are whole is checked at the terminal: annabelle audit verify."""
    found = await asyncio.to_thread(latest, AuditPlaces.of(hub.home), Wanted(last, kind))
    return AuditList(
        records=[AuditRecord(n=r.n, at=r.at, kind=r.kind, trace=r.trace, facts=r.facts, hash=r.hash) for r in found]
    )
