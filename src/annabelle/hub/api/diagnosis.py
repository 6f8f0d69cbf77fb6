"""`GET /diagnosis` and `POST /health/run`: what may be wrong with this install, for the owner (DIA-01, DIA-05)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Query
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
async def diagnose(
    hub: TheHub,
    installation: Annotated[bool, Query(description="Also look at the home and the machine")] = False,
) -> DiagnosisView:
    """Run every check now, all at the same time. One that fails is a finding itself."""
    report = await hub.services.upkeep.diagnosis.run(installation=installation)
    findings = [FindingView.from_row(finding) for finding in report.findings]
    return DiagnosisView(at=report.at, worst=report.worst, findings=findings, text=render_report(report))


class RepairView(ApiAnswer):
    done: bool = Field(description="false: it was left, and why")
    text: str


class RepairList(ApiAnswer):
    steps: list[RepairView]


@router.post("/diagnosis/fix", **document("Fix what is safe to fix"))
async def fix_installation(hub: TheHub) -> RepairList:
    """Makes missing folders, and protects files that others may read. Nothing is deleted."""
    return RepairList(steps=[RepairView.from_row(one) for one in await hub.services.upkeep.diagnosis.repair()])


class HealthView(ApiAnswer):
    """What the monitor of agents dealt with."""

    stuck: int = Field(description="Turns that hung for more than half an hour and were stopped")
    stale_tasks: int = Field(description="Tasks that nobody worked on and were ended")
    stale_goals: int = Field(description="Goals that nothing was done for and wait now")
    retried: int = Field(description="Paused tasks that are tried again")
    expired: int = Field(description="Tasks that were paused for more than a day and cancelled")
    removed: int = Field(description="Tasks that ended long ago and were cleared away")
    text: str = Field(description="The same in words; empty if there was nothing to do")


@router.post("/health/run", **document("Look after the agents now"))
async def run_health_monitor(hub: TheHub) -> HealthView:
    """What happens by itself every five minutes."""
    report = await hub.services.upkeep.health.run()
    return HealthView.from_row(report, text=report.describe())
