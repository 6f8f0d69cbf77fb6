"""`GET /audit`: the latest audit records, newest last, and whether they are whole."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query
from pydantic import Field

from annabelle.core.tools import JsonObject
from annabelle.core.trust import AuditKind
from annabelle.hub.api.endpoint import ApiAnswer, ApiRouter, TheHub, document
from annabelle.hub.security.audit import read_safety_records
from annabelle.store.audit.records import AuditPaths, AuditQuery, read_latest
from annabelle.store.audit.verification import verify_audit

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
    safety: Annotated[bool, Query(description="Only what is about safety, of whatever kind")] = False,
) -> AuditList:
    """For the owner. Whether the records are whole: `GET /audit/verify`."""
    if safety:
        found = await asyncio.to_thread(read_safety_records, hub.base.home, last)
    else:
        found = await asyncio.to_thread(read_latest, AuditPaths.from_home(hub.base.home), AuditQuery(last, kind))
    return AuditList(records=[AuditRecord.from_row(record) for record in found])


class AuditVerdict(ApiAnswer):
    intact: bool = Field(description="Whether no record was changed, removed or moved")
    text: str = Field(description="The same in words, with the first fault")
    incidents: list[str] = Field(description="What happened that is no tampering, such as a crash")


@router.get("/audit/verify", **document("Are the records whole?"))
async def verify_records(hub: TheHub) -> AuditVerdict:
    """Checks every record, from the files alone, as `annabelle audit verify` does."""
    found = await asyncio.to_thread(verify_audit, AuditPaths.from_home(hub.base.home))
    return AuditVerdict(intact=found.is_intact, text=found.describe(), incidents=list(found.incidents))
