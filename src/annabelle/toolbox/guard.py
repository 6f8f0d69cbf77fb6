"""Scans content by asking the guardian server, and records every scan in the audit (GRD-01 to GRD-05, GRD-08)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from annabelle.core.errors import AnnabelleError, ScannerDown
from annabelle.core.messages import OWNER
from annabelle.core.ports import AuditTrail, Scanner
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.core.trace import TraceFile
from annabelle.core.trust import Risk, ScanDirections, ScanOutcome, ThreatFinding, ThreatType
from annabelle.toolbox.call_hooks import GuardRules, RulesFor
from annabelle.toolbox.supervisor.server import ManagedServer

Direction = Literal["input", "output", "message"]
_CONTEXTS: dict[Direction, str] = {"input": "tool input", "output": "tool output", "message": "message"}
_NOTHING = ScanDirections(input=False, output=False)
_CLEAN = ScanOutcome()
_PLAIN_STEP = re.compile(r"\.[A-Za-z_][A-Za-z0-9_-]{0,23}|\[\d{1,6}\]")
_STEP = re.compile(r"\[\d+\]|\.[^.\[]*|[^.\[]+")


class ReadyScanner(Scanner, Protocol):
    """A scanner that knows in advance when it cannot scan."""

    def expect_ready(self) -> None:
        """Raise ScannerDown when it cannot scan now."""
        ...


@dataclass(frozen=True, slots=True)
class ScanSubject:
    """What is scanned, as the audit names it."""

    direction: Direction
    server: str
    tool: str | None
    trace_id: str | None = None
    about: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ContentGuard:
    """Decides what is scanned and records it. Without a scanner nothing is scanned; that is for tests only."""

    scanner: ReadyScanner | None
    rules: RulesFor
    audit: AuditTrail | None = None
    traces: TraceFile | None = None

    def rules_of(self, context: CallContext) -> GuardRules:
        """An agent's own rules hold for its calls, its subagents included; all others have the install's."""
        return self.rules(context.agent_id if context.caller == "agent" else None)

    def flags(self, tool: ToolSpec, own: ScanDirections, context: CallContext) -> ScanDirections:
        """Which directions of this call are scanned: none for tools that only the hub calls."""
        if self.scanner is None or tool.audience == "hub":
            return _NOTHING
        return self.rules_of(context).flags(tool.server, own)

    def expect_ready(self, rules: GuardRules) -> None:
        """Raise ScannerDown when the result could not be scanned and would have to be dropped."""
        if self.scanner is not None and rules.fail_mode == "closed":
            self.scanner.expect_ready()

    async def scan(self, content: object, subject: ScanSubject, rules: GuardRules) -> ScanOutcome:
        """The guardian's verdict. Raises ScannerDown when it cannot scan and nothing may pass unscanned."""
        if self.scanner is None or not _has_content(content):
            return _CLEAN
        source, began = subject.tool or subject.server, time.perf_counter()
        try:
            found = await self.scanner.scan(content, source=source, context=_CONTEXTS[subject.direction])
        except ScannerDown:
            passes = rules.fail_mode == "open"
            verdict = "unscanned" if passes else "not scanned, blocked"
            self._record_scan(content, subject, verdict, None)
            self._trace_scan(subject, verdict, (), began)
            if not passes:
                raise
            return ScanOutcome(unscanned=True)
        self._record_scan(content, subject, found.risk, found)
        self._trace_scan(subject, found.risk, threat_kinds(found), began)
        return found

    def _trace_scan(self, subject: ScanSubject, verdict: str, threats: Sequence[str], began: float) -> None:
        if self.traces is None:
            return
        data: JsonObject = {"server": subject.server, "tool": subject.tool, "direction": subject.direction}
        data |= {"verdict": verdict, "threats": list(threats), "call_id": (subject.about or {}).get("call_id")}
        data["duration_ms"] = round((time.perf_counter() - began) * 1000, 1)
        self.traces.write("content.scanned", data, trace_id=subject.trace_id)

    def _record_scan(self, content: object, subject: ScanSubject, verdict: str, found: ScanOutcome | None) -> None:
        if self.audit is None:
            return
        facts: JsonObject = {
            "server": subject.server,
            "tool": subject.tool,
            "direction": subject.direction,
            "verdict": verdict,
            **content_fingerprint(content),
            **(subject.about or {}),
        }
        if found is not None:
            facts |= {"score": found.score, "threats": threat_kinds(found), "scan_id": found.scan_id}
        self.audit.note("scan", facts, subject.trace_id)


def content_fingerprint(content: object) -> JsonObject:
    """Hash and length, so that the audit does not store the content."""
    try:
        text = content if isinstance(content, str) else json.dumps(content, default=str, sort_keys=True)
    except RecursionError:
        return {"hash": None, "length": None}
    blob = text.encode("utf-8", errors="replace")
    return {"hash": hashlib.sha256(blob).hexdigest()[:16], "length": len(text)}


def threat_kinds(found: ScanOutcome) -> list[str]:
    """The kinds of threats, each once."""
    return list(dict.fromkeys(threat.type for threat in found.threats))


def describe_findings(found: ScanOutcome) -> str:
    """What was found and where, without names that others chose."""
    first: dict[str, str] = {}
    for threat in found.threats:
        first.setdefault(threat.type, _safe_path(threat.path))
    if not first:
        return "malicious_content"
    return ", ".join(f"{kind} at {path}" for kind, path in first.items())


def _safe_path(path: str) -> str:
    """Keep only short, plain keys: a key of foreign data may be a sentence."""
    steps: list[str] = _STEP.findall(path.removeprefix("$")[:200])
    return "$" + "".join(step if _PLAIN_STEP.fullmatch(step) else ".…" for step in steps)


def _has_content(content: object) -> bool:
    return bool(content.strip() if isinstance(content, str) else content)


_log = logging.getLogger(__name__)

AT_ONCE: Final = 16
_ASKING = CallContext(caller="hub", user_id=OWNER)
_GONE = frozenset({"down", "disabled", "stopped"})
_KINDS = frozenset(get_args(ThreatType))
_HINT = "annabelle status says why. It is tried again by itself; GUARDIAN_FAIL_MODE says what holds meanwhile."


class _GuardianThreat(BaseModel):
    model_config = ConfigDict(extra="ignore")

    path: str = "$"
    type: ThreatType = "malicious_content"

    @field_validator("type", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        return value if value in _KINDS else "malicious_content"


class _GuardianVerdict(BaseModel):
    """Only `safe` is required of a guardian; ours gives the risk too."""

    model_config = ConfigDict(extra="ignore")

    safe: bool
    risk: Risk | None = None
    score: float = 0.0
    threats: tuple[_GuardianThreat, ...] = ()
    explanation: str = ""
    scan_id: str | None = None
    unscanned: str | None = None

    def scanned(self) -> ScanOutcome:
        return ScanOutcome(
            risk=self.risk or ("none" if self.safe else "high"),
            score=self.score,
            # Never the snippet: the finding must not carry what was found.
            threats=tuple(ThreatFinding(path=found.path, type=found.type) for found in self.threats),
            explanation=self.explanation,
            scan_id=self.scan_id,
            unscanned=self.unscanned is not None,
        )


class GuardianClient:
    """The scanner of this install. Equal scans at the same time are done once."""

    def __init__(self, find: Callable[[], ManagedServer | None], seconds: float) -> None:
        self._find, self._seconds = find, seconds
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._pending: dict[tuple[str, str, str], asyncio.Task[ScanOutcome]] = {}
        self._restart_task: asyncio.Task[None] | None = None

    def expect_ready(self) -> None:
        """Raise ScannerDown when it cannot scan now, so that a call is not made in vain."""
        self._server()

    async def scan(self, content: object, *, source: str, context: str) -> ScanOutcome:
        try:
            text, content = _to_sendable(content)
        except RecursionError as error:
            raise ScannerDown("It is nested too deeply to be looked at.") from error
        question = (source, context, text)
        task = self._pending.get(question)
        if task is None:
            task = asyncio.create_task(self._ask({"content": content, "source": source, "context": context}))
            self._pending[question] = task
            task.add_done_callback(lambda done: self._on_answer(question, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Cancel a restart: the servers are about to be stopped."""
        if self._restart_task is not None:
            self._restart_task.cancel()
            await asyncio.wait([self._restart_task], timeout=self._seconds)

    def _on_answer(self, question: tuple[str, str, str], task: asyncio.Task[ScanOutcome]) -> None:
        del self._pending[question]
        if not task.cancelled():
            task.exception()  # marks it as retrieved: the caller may be gone

    async def _ask(self, arguments: JsonObject) -> ScanOutcome:
        server = self._server()
        try:
            async with asyncio.timeout(self._seconds), self._slots:
                answer = await server.call(_SCAN_CONTENT, arguments, _ASKING)
        except TimeoutError as error:
            self._restart_if_hung(server)
            raise ScannerDown(f"The guardian did not answer within {self._seconds:g} seconds.", hint=_HINT) from error
        except AnnabelleError as error:
            raise ScannerDown(f"The guardian did not answer: {error.message}", hint=_HINT) from error
        return _parse_verdict(answer)

    def _server(self) -> ManagedServer:
        server = self._find()
        state = "none is set up" if server is None else server.status().state
        if server is None or state in _GONE:
            raise ScannerDown(f"The guardian is not running ({state}).", hint=_HINT)
        return server

    def _restart_if_hung(self, server: ManagedServer) -> None:
        """Restart a hung guardian at once instead of after its missed health checks."""
        if self._restart_task is None or self._restart_task.done():
            self._restart_task = asyncio.create_task(server.restart_if_hung())


def _to_sendable(content: object) -> tuple[str, object]:
    """The content as text and as an object without lone surrogates and NaN, which the server's parser may refuse."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, default=str)
        text.encode()
    except ValueError:
        text = json.dumps(content, ensure_ascii=False, default=str).encode(errors="replace").decode()
        return text, cast("object", json.loads(text, parse_constant=str))
    return text, content


def _parse_verdict(answer: ToolResult) -> ScanOutcome:
    try:
        if answer.is_error:
            raise ScannerDown(f"The guardian could not look: {answer.text[:200]}", hint=_HINT)
        return _GuardianVerdict.model_validate(answer.structured).scanned()
    except ValidationError as error:
        _log.error("the guardian's answer cannot be read: %s", error.errors(include_input=False, include_url=False))
        raise ScannerDown("The guardian's answer can not be read.", hint=_HINT) from error


_SCAN_CONTENT = ToolSpec(
    name="guardian_scan_content",
    server="guardian",
    original_name="scan_content",
    description="",
    input_schema={},
    # Repeatable: a guardian that dies during a scan is asked again after its restart.
    annotations=ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False),
    audience="hub",
)
