"""The two tools of the guardian."""

from __future__ import annotations

import hashlib
import json
import time
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import Field

from annabelle.core.ids import new_id
from annabelle.servers.guardian.assessment import Assessment
from annabelle.servers.guardian.config import GuardianConfig
from annabelle.servers.guardian.document import Document, read_document
from annabelle.servers.guardian.embedded import EmbeddedScanner
from annabelle.servers.guardian.results import SNIPPET_LENGTH, LoggedScan, ScanLog, ScanVerdict, Threat
from annabelle.servers.guardian.scan_log import RecentScans
from annabelle.servers.guardian.threats import SENTENCES, Risk
from annabelle.servers.kit import tool

LOW_SCORE: Final = 0.2

Content = str | dict[str, object] | list[object]


class ScanTools:
    """Scanning, and what was scanned lately."""

    def __init__(self, scanner: EmbeddedScanner, config: GuardianConfig, recent: RecentScans) -> None:
        self._scanner, self._config, self._recent = scanner, config, recent

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
        document = read_document(content)
        assessment = self._scanner.assess(document, context)
        verdict = self._verdict(document, assessment)
        self._recent.add(_logged(verdict, content, source, context, began))
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

    def _verdict(self, document: Document, assessment: Assessment) -> ScanVerdict:
        risk = self._risk(assessment.score)
        threats = [
            Threat(
                path=_clean(document.path_at(finding.position)),
                type=finding.kind,
                snippet=_clean(finding.reading)[:SNIPPET_LENGTH],
            )
            for finding in assessment.findings
            if risk != "none"
        ]
        return ScanVerdict(
            safe=risk != "high",
            confidence=round(max(assessment.score, 1 - assessment.score), 4),
            threats=threats,
            explanation=_explanation(risk, threats),
            scan_id=new_id("scan"),
            risk=risk,
            score=round(assessment.score, 4),
            provider=self._scanner.name,
            unscanned=assessment.unscanned,
        )

    def _risk(self, score: float) -> Risk:
        if score >= self._config.block_score:
            return "high"
        if score >= self._config.label_score:
            return "medium"
        return "low" if score >= LOW_SCORE else "none"


def _explanation(risk: Risk, threats: list[Threat]) -> str:
    if risk == "none":
        return "Nothing suspicious was found."
    why = "; ".join(dict.fromkeys(SENTENCES[threat.type] for threat in threats)) or SENTENCES["malicious_content"]
    return f"The risk is {risk}: {why}."


def _logged(verdict: ScanVerdict, content: Content, source: str, context: str, began: float) -> LoggedScan:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
    return LoggedScan(
        scan_id=verdict.scan_id,
        timestamp=datetime.now(UTC).isoformat(timespec="milliseconds"),
        source=_clean(source)[:200],
        context=_clean(context)[:40],
        content_hash=hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()[:16],
        content_length=len(text),
        safe=verdict.safe,
        confidence=verdict.confidence,
        risk=verdict.risk,
        score=verdict.score,
        threats=list(dict.fromkeys(threat.type for threat in verdict.threats)),
        provider=verdict.provider,
        latency_ms=round((time.perf_counter() - began) * 1000, 2),
    )


def _clean(text: str) -> str:
    """Half a character can not be written as JSON."""
    return text.encode("utf-8", errors="replace").decode()
