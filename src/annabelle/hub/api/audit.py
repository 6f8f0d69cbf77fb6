"""`GET /audit`: the latest audit records, newest last."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query
from pydantic import Field

from annabelle.core.tools import JsonObject
from annabelle.core.trust import AuditKind
from annabelle.hub.api.endpoint import ApiAnswer, ApiRouter, TheHub, document
from annabelle.store.audit.records import AuditPaths, AuditQuery, read_latest

router = ApiRouter("audit")


class AuditRecord(ApiAnswer):
    """One record. It holds names, numbers and fingerprints, never content."""

    n: int
    at: str
    kind: str
    trace: str | None
    facts: JsonObject
    hash: str = Field(description="Covers the record and the hash of the one before")


class AuditList(ApiAnswer):
    records: list[AuditRecord]


@router.get("/audit", **document("What was done and decided"))
async def audit(
    hub: TheHub,
    last: Annotated[int, Query(ge=1, le=1000, description="How many of the newest")] = 50,
    kind: Annotated[AuditKind | None, Query(description="Only of this kind")] = None,
) -> AuditList:
    """For the owner. Whether the records are whole is checked at the terminal: annabelle audit verify."""
    found = await asyncio.to_thread(read_latest, AuditPaths.from_home(hub.base.home), AuditQuery(last, kind))
    return AuditList(records=[AuditRecord.from_row(record) for record in found])
