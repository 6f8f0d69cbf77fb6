"""The diagnosis of a running hub: on request, every six hours, and an hourly count of errors in the logs."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Final

from pydantic import TypeAdapter, ValidationError

from annabelle.core import jsonl
from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import ScannerDown
from annabelle.core.jsonl import JsonRecord
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.base import HubBase, HubStorage
from annabelle.hub.diagnosis.check import CheckFinding, DiagnosisContext, LiveHub
from annabelle.hub.diagnosis.error_baseline import HOUR, ErrorBaseline, count_errors
from annabelle.hub.diagnosis.installation import WHILE_RUNNING
from annabelle.hub.diagnosis.repair import RepairStep, repair_home
from annabelle.hub.diagnosis.report import CHECKS, DiagnosisReport, render_changes, run_checks
from annabelle.toolbox.facade import Toolbox

_log = logging.getLogger(__name__)
_FINDING: Final = TypeAdapter(CheckFinding)


class Diagnosis:
    def __init__(self, *, base: HubBase, storage: HubStorage, agents: AgentManager, toolbox: Toolbox) -> None:
        self._base, self._storage, self._agents, self._toolbox = base, storage, agents, toolbox
        self._last = LastReport(base)
        self._tasks = BackgroundTasks()

    async def start(self) -> None:
        self._tasks.start(self._sample_hourly())

    async def stop(self) -> None:
        await self._tasks.stop()

    async def run(self, *, installation: bool = False) -> DiagnosisReport:
        """Run every check now; with `installation` also those of the home and the machine."""
        checks = (*CHECKS, *WHILE_RUNNING) if installation else CHECKS
        return await run_checks(checks, self._make_context())

    async def repair(self) -> list[RepairStep]:
        """Fix what is safe to fix while a hub runs."""
        return await asyncio.to_thread(partial(repair_home, hub_runs=True), self._make_context())

    async def report_changes(self, fire_id: str, _at: datetime) -> str:
        """What changed since the last report; empty if nothing. A fire that is carried out again says the same.

        Notes wait until somebody asks: nothing needs to be done about them.
        """
        report = await self.run()
        urgent = tuple(finding for finding in report.problems if finding.severity != "info")
        before = await asyncio.to_thread(self._last.replace, fire_id, urgent)
        return render_changes(before, urgent)

    async def sample_errors(self) -> None:
        """Count what the logs got in the last hour, for the baseline."""
        home = self._base.home
        sample = await asyncio.to_thread(count_errors, home.logs, self._base.lifecycle.clock.now())
        if await asyncio.to_thread(ErrorBaseline(home.error_baseline_file).add, sample):
            text = f"{home.error_baseline_file.name} was damaged; what is usual in the logs is counted again."
            self._base.notices.add("error_baseline", text)

    async def _sample_hourly(self) -> None:
        while True:
            await asyncio.sleep(HOUR.total_seconds())
            try:
                await self.sample_errors()
            except OSError as error:
                _log.warning("Errors in the logs could not be counted: %s", error)

    def _make_context(self) -> DiagnosisContext:
        base, guard = self._base, self._toolbox.guard
        rules, guardian_down = guard.rules(None), False
        if rules.enabled and guard.scanner is not None:
            try:
                guard.scanner.expect_ready()
            except ScannerDown:
                guardian_down = True
        live = LiveHub(
            servers=self._toolbox.servers(),
            agents=self._agents.statuses(),
            fail_mode=rules.fail_mode,
            guardian_down=guardian_down,
            probe_engine=self._storage.durable.probe,
        )
        return DiagnosisContext(
            home=base.home,
            settings=base.settings,
            agents=self._agents.registry.config,
            halts=self._agents.halts,
            at=base.lifecycle.clock.now(),
            database=self._storage.database,
            live=live,
        )


class LastReport:
    """What was reported last, one finding a line, so that "forget" can reach it like every log.

    The findings before it are kept too, for a fire that is carried out again after a crash.
    """

    def __init__(self, base: HubBase) -> None:
        self._file = base.home.last_diagnosis_file

    def replace(self, fire_id: str, findings: tuple[CheckFinding, ...]) -> list[CheckFinding]:
        """Keep what is found now, and return what was found in the report before this fire's."""
        records = jsonl.load_records(self._file)
        again = any(record.get("fire") == fire_id for record in records)
        before = _read_findings(records, "before" if again else "now")
        kept: list[JsonRecord] = [*_to_records("before", before), *_to_records("now", findings), {"fire": fire_id}]
        jsonl.rewrite_records(self._file, kept)
        return before


def _to_records(which: str, findings: list[CheckFinding] | tuple[CheckFinding, ...]) -> list[JsonRecord]:
    return [{"report": which, **asdict(finding)} for finding in findings]


def _read_findings(records: list[JsonRecord], which: str) -> list[CheckFinding]:
    found: list[CheckFinding] = []
    for record in records:
        if record.get("report") == which:
            try:
                found.append(_FINDING.validate_python({name: record[name] for name in record if name != "report"}))
            except ValidationError:
                _log.warning("A finding of the last report cannot be read and counts as gone")
    return found
