"""Types for trust: sources of content, classes of tools, scanning, and policy decisions."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import ConfigMistake
from annabelle.core.models import FrozenModel

Source = Literal[
    "user", "config", "own", "memory", "web", "mail", "calendar", "chat", "file", "code", "vault", "external"
]
"""Where content came from. `own` is what Annabelle produced itself: a clock, a sum, its own status."""

ToolClass = Literal[
    "read_private", "read_untrusted", "own_notes", "write_inside", "send_outside", "destroy", "execute", "control"
]
"""What a tool can do at worst, possibly several. `own_notes` is what an agent keeps for a confirmed goal: its notes,
learnings, tasks and check-ins, which foreign content does not block. `control` is the control plane: persona, channels,
schedules, rules, servers, filters."""

Label = Literal["private", "pried", "suspicious", "unscanned", "vouched"]
"""What is known about a result besides its trust. `pried`: private data that only foreign content pointed at.
`vouched`: from an external server whose structured results the owner trusts to say what an id means."""

Risk = Literal["none", "low", "medium", "high"]
"""Result of a scan. High is blocked, medium is labelled, the rest passes."""

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
"""What an audit record is about. `audit` is the audit itself: a gap, a repair, a dropped file."""


class ThreatFinding(FrozenModel):
    """One finding of a scan and the place it stands at, as a JSON path."""

    path: str
    type: ThreatType
    snippet: str = Field(default="", max_length=100)


class ScanOutcome(FrozenModel):
    """What the guardian says of some content."""

    risk: Risk = "none"
    score: float = 0.0
    threats: tuple[ThreatFinding, ...] = ()
    explanation: str = ""
    scan_id: str | None = None
    unscanned: bool = Field(default=False, description="The scanner was down and the setting says: go on")


class PolicyDecision(FrozenModel):
    """What policy says of one call. `reasons` are for the person: why it is asked or refused."""

    verdict: Literal["allow", "ask", "refuse"] = "allow"
    reasons: tuple[str, ...] = ()
    order: tuple[str, ...] = Field(default=(), description="The person's words that were taken as the order")
    classes: tuple[ToolClass, ...] = ()
    labels: tuple[Label, ...] = ()


FactCategory = Literal["preference", "background", "pattern", "project", "contact", "decision"]
ContactType = Literal["work", "personal", "ignored"]
ProjectStatus = Literal["active", "paused", "completed"]
ProjectType = Literal["work", "personal"]
Priority = Literal["high", "medium", "low"]
SourceType = Literal["auto", "manual"]
SourceStatus = Literal["ok", "warning", "error", "unknown"]

Trust = Literal["trusted", "untrusted"]
"""Untrusted is anything somebody else may have written: a page, a mail, a file, an external server's answer."""


class Provenance(FrozenModel):
    """Where the content of a call may have come from. Untrusted once, untrusted for good (TRU-03)."""

    trust: Trust = "trusted"
    origins: tuple[str, ...] = Field(default=(), description="Tools whose untrusted output had been seen by then")


OUTSIDE = ("another agent",)
"""Origin of a call that no turn made: all of it was written by an agent that calls the API."""
EVERY_SERVER = "*"
_SWITCH = {"on": True, "off": False}
_ENTRY = re.compile(r"^(?P<server>\*|[A-Za-z0-9][A-Za-z0-9_-]{0,39})=(?P<input>on|off)/(?P<output>on|off)$")


class ScanDirections(BaseModel):
    """Which directions of a server's traffic the guardian reads. External servers: both, unless the user says less."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: bool = True
    output: bool = True


class ScanDirectionsChange(BaseModel):
    """What somebody wants otherwise for a server; a direction that is left out stays as it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: bool | None = None
    output: bool | None = None


def parse_scans(text: str) -> dict[str, ScanDirectionsChange]:
    """Parses `filer=off/on, *=on/on`: input/output per server; `*` is every server not named."""
    changes: dict[str, ScanDirectionsChange] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        found = _ENTRY.match(entry)
        if found is None:
            raise ConfigMistake(
                f"GUARDIAN_SCAN: {entry[:60]!r} is not of the form server=on/off.",
                hint="Write what goes to the server before the stroke and what it gives back behind it: filer=off/on",
                field="GUARDIAN_SCAN",
            )
        changes[found["server"]] = ScanDirectionsChange(input=_SWITCH[found["input"]], output=_SWITCH[found["output"]])
    return changes
