"""Runs checks side by side, and tells what they found: in a chat, to a machine, or only what has changed."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from annabelle.core.errors import AnnabelleError
from annabelle.hub.diagnosis import data, embedding, logs, schedule, security, services, tools
from annabelle.hub.diagnosis.check import SEVERITIES, Check, CheckFinding, DiagnosisContext, Severity

_log = logging.getLogger(__name__)
CHECKS: Final[tuple[Check, ...]] = (
    *services.CHECKS,
    *embedding.CHECKS,
    *logs.CHECKS,
    *schedule.CHECKS,
    *tools.CHECKS,
    *data.CHECKS,
    *security.CHECKS,
)
CHECK_SECONDS: Final = 10.0
_FINE: Final = "Nothing was found."
_MARKS: Final[dict[Severity, str]] = {"critical": "✗", "warning": "!", "info": "·", "ok": "✓"}
_COUNTED: Final[dict[Severity, tuple[str, str]]] = {
    "critical": ("critical thing", "critical things"),
    "warning": ("warning", "warnings"),
    "info": ("note", "notes"),
}


@dataclass(frozen=True, slots=True)
class DiagnosisReport:
    """Findings, the gravest first."""

    at: datetime
    findings: tuple[CheckFinding, ...]
    not_checked: tuple[str, ...] = ()
    """Checks that need a running hub where there was none."""

    @property
    def problems(self) -> tuple[CheckFinding, ...]:
        return tuple(finding for finding in self.findings if finding.severity != "ok")

    @property
    def worst(self) -> Severity:
        return self.findings[0].severity if self.findings else "ok"

    def with_more(self, other: DiagnosisReport) -> DiagnosisReport:
        found = sort_findings([*self.findings, *other.findings])
        return DiagnosisReport(self.at, found, (*self.not_checked, *other.not_checked))


def sort_findings(findings: Iterable[CheckFinding]) -> tuple[CheckFinding, ...]:
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


async def run_checks(
    checks: Sequence[Check], context: DiagnosisContext, seconds: float = CHECK_SECONDS
) -> DiagnosisReport:
    """Run all that can be run here, at the same time. A check that fails is a finding itself."""
    possible = [check for check in checks if context.live is not None or not check.needs_hub]
    found = await asyncio.gather(*(_run_check(check, context, seconds) for check in possible))
    left = tuple(check.id for check in checks if check not in possible)
    return DiagnosisReport(context.at, sort_findings(finding for findings in found for finding in findings), left)


async def _run_check(check: Check, context: DiagnosisContext, seconds: float) -> list[CheckFinding]:
    try:
        async with asyncio.timeout(seconds):
            problems = await check.run(context)
    except TimeoutError:
        why = f"it took longer than {seconds:g} seconds"
    except AnnabelleError as error:
        why = error.message.rstrip(".")
    except OSError as error:
        why = f"{Path(str(error.filename or '')).name}: {error.strerror}".removeprefix(": ")
    except Exception as error:  # noqa: BLE001  one broken check must not hide what the others found
        _log.exception("The check %s failed", check.id)
        why = type(error).__name__
    else:
        if not problems:
            return [check.finding("ok", _FINE)]
        return [check.finding(one.severity, one.text, one.action, one.subject) for one in problems]
    return [check.finding("warning", f"This could not be checked: {why}.", "/logs hub may say more.")]


def render_report(report: DiagnosisReport) -> str:
    """The report for a chat: a line in sum, then one for each finding and one for what to do about it."""
    counts = Counter(finding.severity for finding in report.findings)
    fine = f"{counts['ok']} checks found nothing"
    if not report.problems:
        return f"All is well: {fine}."
    said = [
        f"{counts[severity]} {names[counts[severity] > 1]}" for severity, names in _COUNTED.items() if counts[severity]
    ]
    return "\n".join([f"{', '.join(said)}; {fine}.", *map(_render_finding, report.problems)])


def _render_finding(finding: CheckFinding) -> str:
    action = f"\n   {finding.action}" if finding.action else ""
    return f"{_MARKS[finding.severity]} {finding.text} ({finding.check}){action}"


def render_changes(before: Iterable[CheckFinding], now: Iterable[CheckFinding]) -> str:
    """What is new and what is gone; empty if neither. Numbers in the text are no change."""
    known, found = _by_identity(before), _by_identity(now)
    new = [finding for identity, finding in found.items() if identity not in known]
    gone = [finding for identity, finding in known.items() if identity not in found]
    worse_or_better = {(finding.check, finding.subject) for finding in new}
    over = [finding for finding in gone if (finding.check, finding.subject) not in worse_or_better]
    lines = [_render_finding(finding) for finding in new]
    lines += [f"{_MARKS['ok']} No longer so: {finding.text} ({finding.check})" for finding in over]
    return "\n".join(["Something changed:", *lines]) if lines else ""


def _by_identity(findings: Iterable[CheckFinding]) -> dict[tuple[str, str, str], CheckFinding]:
    return {(one.check, one.subject, one.severity): one for one in findings if one.severity != "ok"}
