"""What tests of the guard share: a scanner that goes by two words, and an audit in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from annabelle.core.errors import ScannerDown
from annabelle.core.tools import JsonObject
from annabelle.core.trust import AuditKind, Risk, ScanOutcome, ThreatFinding


@dataclass
class MemoryAudit:
    """Notes in a list."""

    notes: list[tuple[AuditKind, JsonObject, str | None]] = field(default_factory=list)

    def note(self, kind: AuditKind, facts: JsonObject, trace_id: str | None = None) -> None:
        self.notes.append((kind, facts, trace_id))

    def of(self, kind: AuditKind) -> list[JsonObject]:
        return [facts for noted, facts, _ in self.notes if noted == kind]


@dataclass
class WordScanner:
    """EVIL is high, DOUBT medium; with `down` it can not look, with `half` it has not looked at everything."""

    down: bool = False
    half: bool = False
    path: str = "$.text"
    asked: list[tuple[object, str, str]] = field(default_factory=list)

    def expect_ready(self) -> None:
        if self.down:
            raise ScannerDown("The guardian is not running (down).", hint="Start it.")

    async def scan(self, content: object, *, source: str, context: str) -> ScanOutcome:
        self.asked.append((content, source, context))
        self.expect_ready()
        text = json.dumps(content)
        risk: Risk = "high" if "EVIL" in text else "medium" if "DOUBT" in text else "none"
        threats = () if risk == "none" else (ThreatFinding(path=self.path, type="prompt_injection"),)
        return ScanOutcome(risk=risk, score=0.5, threats=threats, scan_id="scan_1", unscanned=self.half)
