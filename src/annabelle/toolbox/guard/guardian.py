"""Asks the guardian's server, whichever life of it is the current one (GRD-01, GRD-05)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Final, cast, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from annabelle.core.errors import AnnabelleError, ScannerDown
from annabelle.core.messages import OWNER
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.core.trust import Risk, Scanned, Threat, ThreatType
from annabelle.toolbox.supervision.server import ManagedServer

_log = logging.getLogger(__name__)

AT_ONCE: Final = 16
_ASKING = CallContext(caller="hub", user_id=OWNER)
_GONE = frozenset({"down", "disabled", "stopped"})
_KINDS = frozenset(get_args(ThreatType))
_HINT = "annabelle status says why. It is tried again by itself; GUARDIAN_FAIL_MODE says what holds meanwhile."


class _Found(BaseModel):
    model_config = ConfigDict(extra="ignore")

    path: str = "$"
    type: ThreatType = "malicious_content"

    @field_validator("type", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        return value if value in _KINDS else "malicious_content"


class _Verdict(BaseModel):
    """What a guardian must say at least is whether it is safe; ours says how risky."""

    model_config = ConfigDict(extra="ignore")

    safe: bool
    risk: Risk | None = None
    score: float = 0.0
    threats: tuple[_Found, ...] = ()
    explanation: str = ""
    scan_id: str | None = None
    unscanned: str | None = None

    def scanned(self) -> Scanned:
        return Scanned(
            risk=self.risk or ("none" if self.safe else "high"),
            score=self.score,
            # Never the snippet: what was found must not travel on with the finding.
            threats=tuple(Threat(path=found.path, type=found.type) for found in self.threats),
            explanation=self.explanation,
            scan_id=self.scan_id,
            unscanned=self.unscanned is not None,
        )


class Guardian:
    """The scanner of this install. Equal questions that are under way at the same time are one question."""

    def __init__(self, find: Callable[[], ManagedServer | None], seconds: float) -> None:
        self._find, self._seconds = find, seconds
        self._room = asyncio.Semaphore(AT_ONCE)
        self._asked: dict[tuple[str, str, str], asyncio.Task[Scanned]] = {}
        self._nudging: asyncio.Task[None] | None = None

    def expect_ready(self) -> None:
        """Raise ScannerDown when nobody can look now: what has to be looked at afterwards need not be begun."""
        self._server()

    async def scan(self, content: object, *, source: str, context: str) -> Scanned:
        try:
            text, content = _sendable(content)
        except RecursionError as error:
            raise ScannerDown("It is nested too deeply to be looked at.") from error
        question = (source, context, text)
        task = self._asked.get(question)
        if task is None:
            task = asyncio.create_task(self._ask({"content": content, "source": source, "context": context}))
            self._asked[question] = task
            task.add_done_callback(lambda done: self._answered(question, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Start nothing again from now on: the servers are about to be stopped."""
        if self._nudging is not None:
            self._nudging.cancel()
            await asyncio.wait([self._nudging], timeout=self._seconds)

    def _answered(self, question: tuple[str, str, str], task: asyncio.Task[Scanned]) -> None:
        del self._asked[question]
        if not task.cancelled():
            task.exception()  # looked at: whoever asked may be gone

    async def _ask(self, arguments: JsonObject) -> Scanned:
        server = self._server()
        try:
            async with asyncio.timeout(self._seconds), self._room:
                answer = await server.call(_SCAN_CONTENT, arguments, _ASKING)
        except TimeoutError as error:
            self._nudge(server)
            raise ScannerDown(f"The guardian did not answer within {self._seconds:g} seconds.", hint=_HINT) from error
        except AnnabelleError as error:
            raise ScannerDown(f"The guardian did not answer: {error.message}", hint=_HINT) from error
        return _verdict(answer)

    def _server(self) -> ManagedServer:
        server = self._find()
        state = "none is set up" if server is None else server.status().state
        if server is None or state in _GONE:
            raise ScannerDown(f"The guardian is not running ({state}).", hint=_HINT)
        return server

    def _nudge(self, server: ManagedServer) -> None:
        """One that hangs is started again, so that not everything waits until its health checks are missed."""
        if self._nudging is None or self._nudging.done():
            self._nudging = asyncio.create_task(server.nudge())


def _sendable(content: object) -> tuple[str, object]:
    """The content as text and as it can be sent: a parser that refuses half a character or a number that is none would
    leave the question without an answer."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, default=str)
        text.encode()
    except ValueError:
        text = json.dumps(content, ensure_ascii=False, default=str).encode(errors="replace").decode()
        return text, cast("object", json.loads(text, parse_constant=str))
    return text, content


def _verdict(answer: ToolResult) -> Scanned:
    try:
        if answer.is_error:
            raise ScannerDown(f"The guardian could not look: {answer.text[:200]}", hint=_HINT)
        return _Verdict.model_validate(answer.structured).scanned()
    except ValidationError as error:
        _log.error("The guardian's answer can not be read: %s", error.errors(include_input=False, include_url=False))
        raise ScannerDown("The guardian's answer can not be read.", hint=_HINT) from error


_SCAN_CONTENT = ToolSpec(
    name="guardian_scan_content",
    server="guardian",
    original_name="scan_content",
    description="",
    input_schema={},
    # Repeatable: a guardian that dies under a scan is asked once more in its next life.
    annotations=ToolAnnotations(read_only=True, destructive=False, idempotent=True, open_world=False),
    audience="hub",
)
