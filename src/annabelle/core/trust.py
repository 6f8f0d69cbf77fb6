"""The vocabulary of trust: where content came from, what a tool can do, and what was decided about a call."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Source = Literal[
    "user", "config", "own", "memory", "web", "mail", "calendar", "chat", "file", "code", "vault", "external"
]
"""Where a piece of content came from. `own` is what Annabelle worked out itself: a clock, a sum, its own status."""

ToolClass = Literal["read_private", "read_untrusted", "write_inside", "send_outside", "destroy", "execute", "control"]
"""What a tool can do, at worst. A tool may be in several classes; `control` is the control plane: persona, channels,
schedules, rules, servers, filters."""

Label = Literal["private", "pried", "suspicious", "unscanned", "vouched"]
"""What is known of a result beside its trust. `pried`: private data that nobody but foreign content pointed at.
`vouched`: from an external server whose structured results the owner trusts to say what an id stands for."""

Risk = Literal["none", "low", "medium", "high"]
"""How a scan ended. High is blocked, medium is labelled, the rest passes."""

ThreatType = Literal[
    "prompt_injection",
    "jailbreak",
    "harmful_content",
    "social_engineering",
    "data_exfiltration",
    "privilege_escalation",
    "code_execution",
    "malicious_content",
    "scan_error",
]

AuditKind = Literal[
    "tool", "scan", "approval", "rule", "config", "login", "message", "stop", "server", "forget", "audit"
]
"""What a record of the audit is about. `audit` is about the audit itself: a gap, a repair, a file that was dropped."""


class Threat(BaseModel):
    """One finding of a scan and the place it stands at, as a JSON path."""

    model_config = ConfigDict(frozen=True)

    path: str
    type: ThreatType
    snippet: str = Field(default="", max_length=100)


class Scanned(BaseModel):
    """What the guardian says of some content."""

    model_config = ConfigDict(frozen=True)

    risk: Risk = "none"
    score: float = 0.0
    threats: tuple[Threat, ...] = ()
    explanation: str = ""
    scan_id: str | None = None
    unscanned: bool = Field(default=False, description="The scanner was down and the setting says: go on")


class Decision(BaseModel):
    """What policy says of one call. `reasons` are for the person: why it is asked or refused."""

    model_config = ConfigDict(frozen=True)

    verdict: Literal["allow", "ask", "refuse"] = "allow"
    reasons: tuple[str, ...] = ()
    classes: tuple[ToolClass, ...] = ()
    labels: tuple[Label, ...] = ()
