"""`annabelle doctor`: what may be wrong, through the hub or without one, and what can be fixed safely (DIA-04)."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Final, cast

import typer
from pydantic import TypeAdapter

from annabelle.cli.hub_client import get_json
from annabelle.cli.hub_process import running_hub
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_json, print_line, print_paragraph, print_table
from annabelle.core.errors import AnnabelleError
from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.hub.diagnosis.check import CheckFinding, for_terminal
from annabelle.hub.diagnosis.installation import ALWAYS, WHILE_STOPPED
from annabelle.hub.diagnosis.offline import offline_context
from annabelle.hub.diagnosis.repair import RepairStep, repair_home
from annabelle.hub.diagnosis.report import CHECKS, DiagnosisReport, run_checks

_SECONDS: Final = 30.0
_FINDINGS: Final = TypeAdapter(tuple[CheckFinding, ...])
Fix = Annotated[bool, typer.Option("--fix", help="Fix what is safe to fix first. Nothing you wrote is deleted.")]

app = command_app()


@app.command()
def doctor(fix: Fix = False, json: Json = False) -> None:
    """Look for what may be wrong, also when Annabelle does not start. Exit code 1 if there is a warning or worse."""
    home = Home.from_environment()
    hub_runs = running_hub(home) is not None
    steps = _repair(home, hub_runs=hub_runs) if fix else []
    report = _ask_hub(home) if hub_runs else _check_offline(home, hub_runs=False)
    if json:
        _print_json(report, steps, hub_runs=hub_runs)
    else:
        _print(report, steps)
    if report.worst in ("critical", "warning"):
        raise typer.Exit(1)


def _repair(home: Home, *, hub_runs: bool) -> list[RepairStep]:
    with offline_context(home) as context:
        return repair_home(context, hub_runs=hub_runs)


def _ask_hub(home: Home) -> DiagnosisReport:
    """What the hub finds in itself, and what it cannot see of its surroundings."""
    try:
        answer = get_json("/diagnosis")
    except AnnabelleError as error:
        text = f"Annabelle runs, but can not be asked: {error.message}"
        unheard = CheckFinding("hub-process", "installation", "critical", text, error.hint or "annabelle restart")
        return DiagnosisReport(now(), (unheard,)).with_more(_check_offline(home, hub_runs=True))
    at = datetime.fromisoformat(str(answer["at"]))
    found = DiagnosisReport(at, _FINDINGS.validate_python(answer["findings"]))
    return found.with_more(_check_surroundings(home))


def _check_surroundings(home: Home) -> DiagnosisReport:
    with offline_context(home) as context:
        return asyncio.run(run_checks(ALWAYS, context, _SECONDS))


def _check_offline(home: Home, *, hub_runs: bool) -> DiagnosisReport:
    """Without a hub: first whether one could start."""
    with offline_context(home) as context:
        checks = (*ALWAYS, *(() if hub_runs else WHILE_STOPPED), *(CHECKS if home.root.is_dir() else ()))
        return asyncio.run(run_checks(checks, context, _SECONDS))


def _print_json(report: DiagnosisReport, steps: list[RepairStep], *, hub_runs: bool) -> None:
    print_json(
        {
            "running": hub_runs,
            "at": report.at.isoformat(),
            "worst": report.worst,
            "findings": [{**asdict(finding), "action": for_terminal(finding.action)} for finding in report.findings],
            "notChecked": report.not_checked,
            "fixed": [step.text for step in steps if step.done],
            "left": [step.text for step in steps if not step.done],
        }
    )


def _print(report: DiagnosisReport, steps: list[RepairStep]) -> None:
    for step in steps:
        print_paragraph(f"{'✓' if step.done else '·'} {clean(step.text)}")
    if steps:
        print_line("")
    rows = [
        (finding.severity, finding.check, clean(f"{finding.text} {for_terminal(finding.action)}"))
        for finding in report.problems
    ]
    if rows:
        print_table(("SEVERITY", "CHECK", "FOUND, AND WHAT TO DO"), cast("list[tuple[str, ...]]", rows))
        print_line("")
    fine = Counter(finding.severity for finding in report.findings)["ok"]
    left = f" {len(report.not_checked)} need a running Annabelle." if report.not_checked else ""
    print_paragraph(f"{fine} checks found nothing.{left}")
