"""Verdicts: made from an assessment, returned by the tools, and cached in memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from pydantic import Field

from annabelle.core.ids import new_id
from annabelle.core.trust import Risk, ThreatType
from annabelle.servers.guardian.config import GuardianConfig
from annabelle.servers.guardian.document import ScanDocument
from annabelle.servers.guardian.judges import LOW_SCORE, Assessment
from annabelle.servers.kit import Result

THREAT_SENTENCES: Final[dict[ThreatType, str]] = {
    "prompt_injection": "it gives orders to whoever reads it",
    "jailbreak": "it tries to talk the assistant out of its rules",
    "harmful_content": "it asks for something that harms people",
    "social_engineering": "it presses the reader to act by pretence or fear",
    "data_exfiltration": "it wants private data sent somewhere",
    "privilege_escalation": "it wants rights, access or settings changed",
    "code_execution": "it carries code or commands to be run",
    "malicious_content": "it looks like an attack",
    "scan_error": "it could not be looked at",
}


SNIPPET_LENGTH = 100


class ScanThreat(Result):
    """One finding."""

    path: str = Field(description="JSON path of the text; ~ at its end means the key itself")
    type: ThreatType = Field(description="What kind of threat it is")
    snippet: str = Field(max_length=SNIPPET_LENGTH, description="The text as it was understood, at most 100 characters")


class ScanVerdict(Result):
    """What a scan found."""

    safe: bool = Field(description="False where the risk is high: such content is to be blocked")
    confidence: float = Field(ge=0, le=1, description="How sure the verdict is")
    threats: list[ScanThreat] = Field(description="What was found, the gravest first")
    explanation: str = Field(description="The verdict in a sentence")
    scan_id: str = Field(description="Under which get_scan_log knows it")
    risk: Risk = Field(description="high is to be blocked, medium to be labelled")
    score: float = Field(ge=0, le=1, description="How much it looks like an attack, calibrated on ordinary content")
    provider: str = Field(description="Who judged")
    unscanned: str | None = Field(default=None, description="What of it was not looked at, in a sentence")


class LoggedScan(Result):
    """A scan as it is kept: never what was scanned."""

    scan_id: str = Field(description="Id of the scan")
    timestamp: str = Field(description="When, in UTC")
    source: str = Field(description="Where the content came from")
    context: str = Field(description="What it was: a message, a tool's input or output")
    content_hash: str = Field(description="The first 16 digits of its SHA-256")
    content_length: int = Field(description="Its characters")
    safe: bool = Field(description="Whether it was let through")
    confidence: float = Field(description="How sure the verdict was")
    risk: Risk = Field(description="How grave it was")
    score: float = Field(description="How much it looked like an attack")
    threats: list[ThreatType] = Field(description="The kinds that were found")
    provider: str = Field(description="Who judged")
    latency_ms: float = Field(description="How long it took")


class ScanLog(Result):
    """The latest scans."""

    scans: list[LoggedScan] = Field(description="The newest first")
    total: int = Field(description="How many there are that fit, shown or not")


def make_verdict(document: ScanDocument, assessment: Assessment, config: GuardianConfig, provider: str) -> ScanVerdict:
    """Build the verdict for the hub: high risk is to be blocked, medium to be labelled."""
    risk = _risk_of_score(assessment.score, config)
    threats = [
        ScanThreat(
            path=replace_unencodable(document.path_at(finding.position)),
            type=finding.kind,
            snippet=replace_unencodable(" ".join(finding.reading.split()))[:SNIPPET_LENGTH],
        )
        for finding in assessment.findings
        if risk != "none" and finding.score >= LOW_SCORE
    ]
    return ScanVerdict(
        safe=risk != "high",
        confidence=round(max(assessment.score, 1 - assessment.score), 4),
        threats=threats,
        explanation=_explain(risk, threats),
        scan_id=new_id("scan"),
        risk=risk,
        score=round(assessment.score, 4),
        provider=provider,
        unscanned=assessment.unscanned,
    )


def failed_verdict(provider: str) -> ScanVerdict:
    """Verdict for content that breaks the scanner. It is blocked."""
    return ScanVerdict(
        safe=False,
        confidence=1.0,
        threats=[ScanThreat(path="$", type="scan_error", snippet="")],
        explanation=f"The risk is high: {THREAT_SENTENCES['scan_error']}.",
        scan_id=new_id("scan"),
        risk="high",
        score=1.0,
        provider=provider,
        unscanned="The scan broke off, so nothing of it counts as looked at.",
    )


def replace_unencodable(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", errors="replace").decode()


def _risk_of_score(score: float, config: GuardianConfig) -> Risk:
    if score >= config.block_score:
        return "high"
    if score >= config.label_score:
        return "medium"
    return "low" if score >= LOW_SCORE else "none"


def _explain(risk: Risk, threats: list[ScanThreat]) -> str:
    if risk == "none":
        return "Nothing suspicious was found."
    why = (
        "; ".join(dict.fromkeys(THREAT_SENTENCES[threat.type] for threat in threats))
        or THREAT_SENTENCES["malicious_content"]
    )
    return f"The risk is {risk}: {why}."


MAX_VERDICTS: Final = 2_000


class VerdictCache:
    def __init__(self, kept: int = MAX_VERDICTS) -> None:
        self._kept = kept
        self._verdicts: OrderedDict[tuple[str, str], ScanVerdict] = OrderedDict()

    def get(self, fingerprint: str, context: str) -> ScanVerdict | None:
        key = (fingerprint, context)
        if key in self._verdicts:
            self._verdicts.move_to_end(key)
        return self._verdicts.get(key)

    def store(self, fingerprint: str, context: str, verdict: ScanVerdict) -> None:
        self._verdicts[fingerprint, context] = verdict
        if len(self._verdicts) > self._kept:
            self._verdicts.popitem(last=False)


MAX_SCANS: Final = 1_000


class RecentScans:
    """Bounded list of scans, without their content."""

    def __init__(self, kept: int = MAX_SCANS) -> None:
        self._kept = kept
        self._scans: OrderedDict[str, LoggedScan] = OrderedDict()

    def add(self, scan: LoggedScan) -> None:
        self._scans[scan.scan_id] = scan
        if len(self._scans) > self._kept:
            self._scans.popitem(last=False)

    def find(self, scan_id: str | None, threats_only: bool) -> list[LoggedScan]:
        """Matching scans, newest first."""
        if scan_id is not None:
            found = self._scans.get(scan_id)
            scans = [] if found is None else [found]
        else:
            scans = list(reversed(self._scans.values()))
        return [scan for scan in scans if scan.threats or not threats_only]
