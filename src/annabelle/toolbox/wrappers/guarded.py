"""Has the guardian read what goes in and what comes out. Blocked input is never executed, blocked output never seen.

A middle risk does not block: the result is labelled, and policy asks sooner (GRD-02).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from annabelle.core.errors import AnnabelleError, ScannerDown, SecurityBlocked
from annabelle.core.ports import ToolClient
from annabelle.core.scans import Scan
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import Label, Risk, Scanned
from annabelle.toolbox.guard.guard import Direction, Guard, Subject, findings

_GO_ON = "Do not try to get around this. Go on without it, or tell the user."
_LONGEST_COMPARED = 200_000


@dataclass(frozen=True, slots=True)
class Guarded:
    """`own` is what the server's manifest or entry says about scanning; settings and agents may say otherwise."""

    inner: ToolClient
    guard: Guard
    own: Scan

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        flags = self.guard.flags(tool, self.own, context)
        if not flags.input and not flags.output:
            return await self.inner.call(tool, arguments, context)
        try:
            going = await self._going(tool, arguments, context, flags)
        except SecurityBlocked as blocked:
            return _refusal(blocked, context)
        try:
            result = await self.inner.call(tool, arguments, context)
        except AnnabelleError as error:
            raise (await self._harmless(error, tool, context) if flags.output else error) from None
        coming = Scanned()
        if flags.output:
            try:
                coming = await self._look(_content(result), "output", tool, context)
                _withhold(coming, tool)
            except ScannerDown as down:
                return _refusal(_unseen(down, tool), context)
            except SecurityBlocked as blocked:
                return _refusal(blocked, context)
        return _labelled(result, going, coming)

    async def _going(self, tool: ToolSpec, arguments: JsonObject, context: CallContext, flags: Scan) -> Scanned:
        """What is known of the arguments. Raises where the call must not be made."""
        try:
            going = await self._look(arguments, "input", tool, context) if flags.input else Scanned()
            if flags.output:
                self.guard.expect_ready(self.guard.rules_of(context))
        except ScannerDown as down:
            message = f"{tool.name} was not called, because nothing passes unscanned. {down.message}"
            raise ScannerDown(message, hint=down.hint) from down
        if going.risk == "high":
            raise SecurityBlocked(
                f"{tool.name} was not called: the guardian found {findings(going)} of its arguments.", hint=_GO_ON
            )
        return going

    async def _look(self, content: object, direction: Direction, tool: ToolSpec, context: CallContext) -> Scanned:
        about: JsonObject = {"call_id": context.call_id} if context.call_id is not None else {}
        subject = Subject(direction, tool.server, tool.name, context.trace_id, about)
        return await self.guard.look(content, subject, self.guard.rules_of(context))

    async def _harmless(self, error: AnnabelleError, tool: ToolSpec, context: CallContext) -> AnnabelleError:
        """The error, or one of its kind in our words: a server can write its last words to be read by a model."""
        try:
            said = error.message if error.hint is None else f"{error.message}\n{error.hint}"
            found = await self._look(said, "output", tool, context)
        except ScannerDown:
            return type(error)(f"{tool.name} failed, and what was said about it could not be scanned.")
        if found.risk != "high":
            return error
        return type(error)(f"{tool.name} failed, and the guardian withheld what was said: it found {findings(found)}.")


def _content(result: ToolResult) -> object:
    """All of a result that somebody may read; what is said twice is looked at once."""
    text, structured = result.text, result.structured
    if result.error is not None and result.error.message not in text:
        return {"text": text, "error": result.error.model_dump(exclude_none=True), "structured": structured}
    if structured is None:
        return text
    if not text or text in structured.values() or _same(text, structured):
        return structured
    return {"text": text, "structured": structured}


def _same(text: str, structured: JsonObject) -> bool:
    """Whether the text is nothing but the structure, written down with or without what is empty in it."""
    if len(text) > _LONGEST_COMPARED or not text.startswith("{"):
        return False
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return parsed in (structured, _without_nothing(structured))


def _without_nothing(value: object) -> object:
    if isinstance(value, dict):
        entries = cast("JsonObject", value).items()
        return {key: _without_nothing(inner) for key, inner in entries if inner is not None}
    if isinstance(value, list):
        return [_without_nothing(inner) for inner in cast("list[object]", value)]
    return value


def _withhold(coming: Scanned, tool: ToolSpec) -> None:
    if coming.risk == "high":
        raise SecurityBlocked(
            f"{tool.name} was called, but the guardian withheld what it gave back: it found {findings(coming)}.",
            hint=f"What the call did stays done; do not repeat it to see the content. {_GO_ON}",
        )


def _unseen(down: ScannerDown, tool: ToolSpec) -> ScannerDown:
    return ScannerDown(
        f"{tool.name} was called, but what it gave back could not be scanned and is withheld. {down.message}",
        hint=f"What the call did stays done. {down.hint or ''}".rstrip(),
    )


def _refusal(blocked: SecurityBlocked, context: CallContext) -> ToolResult:
    """Our own words and nothing else, so they taint nobody."""
    risk: Risk = "none" if isinstance(blocked, ScannerDown) else "high"
    body = blocked.body(context.trace_id)
    return ToolResult.failure(body).model_copy(update={"trust": "trusted", "source": "own", "risk": risk})


def _labelled(result: ToolResult, going: Scanned, coming: Scanned) -> ToolResult:
    labels: list[Label] = list(result.labels)
    if coming.risk == "medium":
        labels.append("suspicious")
    if going.unscanned or coming.unscanned:
        labels.append("unscanned")
    if coming.risk == result.risk and len(labels) == len(result.labels):
        return result
    return result.model_copy(update={"risk": coming.risk, "labels": tuple(dict.fromkeys(labels))})
