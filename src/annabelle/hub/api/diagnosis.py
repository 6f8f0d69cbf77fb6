"""`GET /diagnosis`: what may be wrong with this install, for the owner (DIA-01)."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from annabelle.hub.api.endpoint import ApiAnswer, ApiRouter, TheHub, document
from annabelle.hub.diagnosis.check import Category, Severity
from annabelle.hub.diagnosis.report import render_report

router = ApiRouter("hub")


class FindingView(ApiAnswer):
    """What one check says. Those that found nothing are there too, as `ok`."""

    check: str = Field(examples=["mcp-health"])
    category: Category
    severity: Severity
    text: str
    action: str = Field(description="What to do about it; commands are those of a chat")
    subject: str = Field(description="What it is about, where one check may find several things")


class DiagnosisView(ApiAnswer):
    at: datetime
    worst: Severity
    findings: list[FindingView] = Field(description="The gravest first")
    text: str = Field(description="The same in words, as a chat shows it")


@router.get("/diagnosis", **document("What may be wrong?"))
async def diagnose(hub: TheHub) -> DiagnosisView:
    """Run every check now, all at the same time. One that fails is a finding itself."""
    report = await hub.services.diagnosis.run()
    findings = [FindingView.from_row(finding) for finding in report.findings]
    return DiagnosisView(at=report.at, worst=report.worst, findings=findings, text=render_report(report))
