"""Turns what the judges think into an answer."""

from __future__ import annotations

from annabelle.core.ids import new_id
from annabelle.core.trust import Risk
from annabelle.servers.guardian.assessment import Assessment
from annabelle.servers.guardian.config import GuardianConfig
from annabelle.servers.guardian.document import Document
from annabelle.servers.guardian.judging import LOW_SCORE
from annabelle.servers.guardian.results import SNIPPET_LENGTH, ScanVerdict, Threat
from annabelle.servers.guardian.threats import SENTENCES


def make_verdict(document: Document, assessment: Assessment, config: GuardianConfig, provider: str) -> ScanVerdict:
    """What the hub is told: high is to be blocked, medium to be labelled."""
    risk = _risk(assessment.score, config)
    threats = [
        Threat(
            path=writable(document.path_at(finding.position)),
            type=finding.kind,
            snippet=writable(" ".join(finding.reading.split()))[:SNIPPET_LENGTH],
        )
        for finding in assessment.findings
        if risk != "none" and finding.score >= LOW_SCORE
    ]
    return ScanVerdict(
        safe=risk != "high",
        confidence=round(max(assessment.score, 1 - assessment.score), 4),
        threats=threats,
        explanation=_explanation(risk, threats),
        scan_id=new_id("scan"),
        risk=risk,
        score=round(assessment.score, 4),
        provider=provider,
        unscanned=assessment.unscanned,
    )


def failed_verdict(provider: str) -> ScanVerdict:
    """Content that breaks the scanner is not let through."""
    return ScanVerdict(
        safe=False,
        confidence=1.0,
        threats=[Threat(path="$", type="scan_error", snippet="")],
        explanation=f"The risk is high: {SENTENCES['scan_error']}.",
        scan_id=new_id("scan"),
        risk="high",
        score=1.0,
        provider=provider,
        unscanned="The scan broke off, so nothing of it counts as looked at.",
    )


def writable(text: str) -> str:
    """Half a character can not be written as JSON."""
    return text.encode("utf-8", errors="replace").decode()


def _risk(score: float, config: GuardianConfig) -> Risk:
    if score >= config.block_score:
        return "high"
    if score >= config.label_score:
        return "medium"
    return "low" if score >= LOW_SCORE else "none"


def _explanation(risk: Risk, threats: list[Threat]) -> str:
    if risk == "none":
        return "Nothing suspicious was found."
    why = "; ".join(dict.fromkeys(SENTENCES[threat.type] for threat in threats)) or SENTENCES["malicious_content"]
    return f"The risk is {risk}: {why}."
