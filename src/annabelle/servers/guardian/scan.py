"""The guardian's tools."""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import AnnabelleError
from annabelle.core.ids import new_id
from annabelle.servers.guardian.config import GuardianConfig
from annabelle.servers.guardian.document import ScanFields, collect_fields, read_fields
from annabelle.servers.guardian.judges import ContentJudges, run_by_length
from annabelle.servers.guardian.verdicts import (
    LoggedScan,
    RecentScans,
    ScanLog,
    ScanVerdict,
    VerdictCache,
    failed_verdict,
    make_verdict,
    replace_unencodable,
)
from annabelle.servers.kit import tool

_log = logging.getLogger(__name__)

Content = str | dict[str, object] | list[object]


class ScanTools:
    def __init__(self, judges: ContentJudges, config: GuardianConfig) -> None:
        self._judges, self._config = judges, config
        self._recent, self._remembered = RecentScans(), VerdictCache()

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="hub")
    async def scan_content(
        self,
        content: Annotated[Content, Field(description="A text, an object or a list; every string in it is looked at")],
        source: Annotated[str, Field(description="Where it comes from, as gmail_get_email")] = "",
        context: Annotated[
            str, Field(description="What it is: message, tool input or tool output; anything else is read as output")
        ] = "tool output",
    ) -> ScanVerdict:
        """Judge content: whether it tries to give orders, steal data or break rules, and where."""
        began = time.perf_counter()
        fields = collect_fields(content)
        fingerprint = fields.fingerprint()
        verdict = self._remembered.get(fingerprint, context)
        if verdict is None:
            verdict = await self._judge(fields, fingerprint, context)
        else:
            verdict = verdict.model_copy(update={"scan_id": new_id("scan")})
        self._recent.add(_make_log_entry(verdict, fields, fingerprint, source, context, began))
        return verdict

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="hub")
    async def get_scan_log(
        self,
        scan_id: Annotated[str | None, Field(description="Only this scan")] = None,
        limit: Annotated[int, Field(ge=1, le=1_000, description="How many at most")] = 50,
        threats_only: Annotated[bool, Field(description="Only scans that found something")] = False,
    ) -> ScanLog:
        """Show the latest scans without what was scanned."""
        found = self._recent.find(scan_id, threats_only)
        return ScanLog(scans=found[:limit], total=len(found))

    async def _judge(self, fields: ScanFields, fingerprint: str, context: str) -> ScanVerdict:
        try:
            document = await run_by_length(fields.length, lambda: read_fields(fields))
            assessment = await self._judges.judge(document, context)
        except AnnabelleError:
            raise
        except Exception:  # noqa: BLE001  content that breaks the scanner must not pass
            _log.exception("a scan failed")
            return failed_verdict(self._judges.name)
        verdict = make_verdict(document, assessment, self._config, self._judges.name)
        if assessment.final:
            self._remembered.store(fingerprint, context, verdict)
        return verdict


def _make_log_entry(
    verdict: ScanVerdict, fields: ScanFields, fingerprint: str, source: str, context: str, began: float
) -> LoggedScan:
    return LoggedScan(
        **verdict.model_dump(include={"scan_id", "safe", "confidence", "risk", "score", "provider"}),
        timestamp=datetime.now(UTC).isoformat(timespec="milliseconds"),
        source=replace_unencodable(source)[:200],
        context=replace_unencodable(context)[:40],
        content_hash=fingerprint[:16],
        content_length=fields.length,
        threats=list(dict.fromkeys(threat.type for threat in verdict.threats)),
        latency_ms=round((time.perf_counter() - began) * 1000, 2),
    )
