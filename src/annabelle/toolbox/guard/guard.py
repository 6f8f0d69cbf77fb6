"""Decides what is looked at, has it looked at, and notes every look (GRD-02 … GRD-05, GRD-08)."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Literal, Protocol

from annabelle.core.errors import ScannerDown
from annabelle.core.ports import Audit, Scanner
from annabelle.core.scans import Scan
from annabelle.core.tools import CallContext, JsonObject, ToolSpec
from annabelle.core.trust import Scanned
from annabelle.toolbox.guard.rules import GuardRules, RulesFor

Direction = Literal["input", "output", "message"]
_CONTEXTS: dict[Direction, str] = {"input": "tool input", "output": "tool output", "message": "message"}
_NOTHING = Scan(input=False, output=False)
_CLEAN = Scanned()
_PLAIN_STEP = re.compile(r"\.[A-Za-z_][A-Za-z0-9_-]{0,23}|\[\d{1,6}\]")
_STEP = re.compile(r"\[\d+\]|\.[^.\[]*|[^.\[]+")


class Watched(Scanner, Protocol):
    """A scanner that knows beforehand when it can not look."""

    def expect_ready(self) -> None:
        """Raise ScannerDown when nobody can look now."""
        ...


@dataclass(frozen=True, slots=True)
class Subject:
    """What is looked at, as the audit names it."""

    direction: Direction
    server: str
    tool: str | None
    trace_id: str | None = None
    about: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """Whoever has content asks here. Without a scanner nothing is looked at: for tests of the parts below alone."""

    scanner: Watched | None
    rules: RulesFor
    audit: Audit | None = None

    def rules_of(self, context: CallContext) -> GuardRules:
        """An agent's own rules are for what the agent calls, its subagents included; people have the install's."""
        return self.rules(context.agent_id if context.caller == "agent" else None)

    def flags(self, tool: ToolSpec, own: Scan, context: CallContext) -> Scan:
        """Which directions of this call are scanned. What only the hub calls is between it and one of our servers."""
        if self.scanner is None or tool.audience == "hub":
            return _NOTHING
        return self.rules_of(context).flags(tool.server, own)

    def expect_ready(self, rules: GuardRules) -> None:
        """Raise ScannerDown when what comes back could not be looked at and would have to be thrown away."""
        if self.scanner is not None and rules.fail_mode == "closed":
            self.scanner.expect_ready()

    async def look(self, content: object, subject: Subject, rules: GuardRules) -> Scanned:
        """What the guardian says. Raises ScannerDown when it can not look and nothing may pass then."""
        if self.scanner is None or not _speaks(content):
            return _CLEAN
        source = subject.tool or subject.server
        try:
            found = await self.scanner.scan(content, source=source, context=_CONTEXTS[subject.direction])
        except ScannerDown:
            passes = rules.fail_mode == "open"
            self._note(content, subject, "unscanned" if passes else "not scanned, blocked", None)
            if not passes:
                raise
            return Scanned(unscanned=True)
        self._note(content, subject, found.risk, found)
        return found

    def _note(self, content: object, subject: Subject, verdict: str, found: Scanned | None) -> None:
        if self.audit is None:
            return
        facts: JsonObject = {
            "server": subject.server,
            "tool": subject.tool,
            "direction": subject.direction,
            "verdict": verdict,
            **fingerprint(content),
            **(subject.about or {}),
        }
        if found is not None:
            facts |= {"score": found.score, "threats": kinds(found), "scan_id": found.scan_id}
        self.audit.note("scan", facts, subject.trace_id)


def fingerprint(content: object) -> JsonObject:
    """By what the audit knows content without holding it."""
    try:
        text = content if isinstance(content, str) else json.dumps(content, default=str, sort_keys=True)
    except RecursionError:
        return {"hash": None, "length": None}
    blob = text.encode("utf-8", errors="replace")
    return {"hash": hashlib.sha256(blob).hexdigest()[:16], "length": len(text)}


def kinds(found: Scanned) -> list[str]:
    """The kinds of threats, each once."""
    return list(dict.fromkeys(threat.type for threat in found.threats))


def findings(found: Scanned) -> str:
    """What was found and where, in a few words of our own: names that others chose are left out of the path."""
    first: dict[str, str] = {}
    for threat in found.threats:
        first.setdefault(threat.type, _plain(threat.path))
    if not first:
        return "malicious_content"
    return ", ".join(f"{kind} at {path}" for kind, path in first.items())


def _plain(path: str) -> str:
    """A key of foreign data may be a sentence; only short, plain ones are repeated."""
    steps: list[str] = _STEP.findall(path.removeprefix("$")[:200])
    return "$" + "".join(step if _PLAIN_STEP.fullmatch(step) else ".…" for step in steps)


def _speaks(content: object) -> bool:
    """Whether there is anything in it that could be read."""
    return bool(content.strip() if isinstance(content, str) else content)
