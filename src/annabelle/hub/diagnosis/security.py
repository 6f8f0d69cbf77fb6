"""Checks of what the guardian found lately, from the audit."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

from annabelle.hub.diagnosis.check import Check, DiagnosisContext, Problem
from annabelle.store.audit.records import AuditChainRecord, AuditPaths, AuditQuery, read_latest

THREATS: Final = 3
THREATS_WITHIN: Final = timedelta(hours=1)
THREAT_SCANS: Final = 200
DOUBTFUL: Final = 5
DOUBTFUL_SCANS: Final = 50
CONFIDENT: Final = 0.5


async def _read_scans(context: DiagnosisContext, query: AuditQuery) -> list[AuditChainRecord]:
    return await asyncio.to_thread(read_latest, AuditPaths.from_home(context.home), query)


async def check_threats(context: DiagnosisContext) -> list[Problem]:
    since = context.at - THREATS_WITHIN
    scans = await _read_scans(context, AuditQuery(THREAT_SCANS, "scan", since))
    threats = sum(scan.facts.get("verdict") == "high" for scan in scans)
    if threats < THREATS:
        return []
    text = f"The guardian blocked {threats} things in the last hour."
    return [Problem("warning", text, "/security shows where they came from.")]


async def check_confidence(context: DiagnosisContext) -> list[Problem]:
    scans = await _read_scans(context, AuditQuery(DOUBTFUL_SCANS, "scan"))
    doubtful = sum(measure_confidence(scan) < CONFIDENT for scan in scans)
    if doubtful < DOUBTFUL:
        return []
    text = f"The guardian was in doubt about {doubtful} of its last {len(scans)} scans."
    return [Problem("info", text, "/security shows them. A guarding model may know better: GUARDIAN_PROVIDER.")]


def measure_confidence(scan: AuditChainRecord) -> float:
    """1 where the score says yes or no, 0 where it is in the middle or nothing was scanned."""
    score = scan.facts.get("score")
    return abs(2 * score - 1) if isinstance(score, int | float) else 0.0


CHECKS: Final = (
    Check(
        "threat-rate",
        "security",
        ("warning",),
        f"the guardian blocked {THREATS} or more of the last {THREAT_SCANS} scans within 1 h",
        check_threats,
    ),
    Check(
        "guardian-scan-quality",
        "security",
        ("info",),
        f"{DOUBTFUL} or more of the last {DOUBTFUL_SCANS} scans have a confidence below {CONFIDENT:g}: their score lies"
        " between 0.25 and 0.75, or they could not be made",
        check_confidence,
    ),
)
