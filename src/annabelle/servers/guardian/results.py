"""What the guardian's tools answer."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.trust import Risk, ThreatType
from annabelle.servers.kit import Result

SNIPPET_LENGTH = 100


class Threat(BaseModel):
    """One finding."""

    model_config = ConfigDict(frozen=True)

    path: str = Field(description="JSON path of the text; ~ at its end means the key itself")
    type: ThreatType = Field(description="What kind of threat it is")
    snippet: str = Field(max_length=SNIPPET_LENGTH, description="The text as it was understood, at most 100 characters")


class ScanVerdict(Result):
    """What a scan found."""

    safe: bool = Field(description="False where the risk is high: such content is to be blocked")
    confidence: float = Field(ge=0, le=1, description="How sure the verdict is")
    threats: list[Threat] = Field(description="What was found, the gravest first")
    explanation: str = Field(description="The verdict in a sentence")
    scan_id: str = Field(description="Under which get_scan_log knows it")
    risk: Risk = Field(description="high is to be blocked, medium to be labelled")
    score: float = Field(ge=0, le=1, description="How much it looks like an attack, calibrated on ordinary content")
    provider: str = Field(description="Who judged")
    unscanned: str | None = Field(default=None, description="What of it was not looked at, in a sentence")


class LoggedScan(BaseModel):
    """A scan as it is kept: never what was scanned."""

    model_config = ConfigDict(frozen=True)

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
