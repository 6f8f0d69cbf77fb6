"""Scans what goes in and what comes out, and labels each result with its source and trust (GRD-02, POL-04)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import cast

from annabelle.core.errors import AnnabelleError, ScannerDown, SecurityBlocked
from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import Label, Risk, ScanDirections, ScanOutcome
from annabelle.policy.tool_traits import ToolTraits
from annabelle.toolbox.catalogue import NATIVE
from annabelle.toolbox.guard import ContentGuard, Direction, ScanSubject, describe_findings

_LONGEST_COMPARED = 200_000


@dataclass(frozen=True, slots=True)
class ScanContent:
    """`own` is the scan setting of the server's manifest or entry; settings and agents may override it."""

    inner: ToolClient
    guard: ContentGuard
    own: ScanDirections

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        flags = self.guard.flags(tool, self.own, context)
        if not flags.input and not flags.output:
            return await self.inner.call(tool, arguments, context)
        try:
            going = await self._scan_arguments(tool, arguments, context, flags)
        except SecurityBlocked as blocked:
            return _to_refusal(blocked, context)
        try:
            result = await self.inner.call(tool, arguments, context)
        except AnnabelleError as error:
            raise (await self._scan_error(error, tool, context) if flags.output else error) from None
        coming = ScanOutcome()
        if flags.output:
            try:
                coming = await self._scan(_scannable_content(result), "output", tool, context)
                _raise_if_blocked(coming, tool)
            except ScannerDown as down:
                return _to_refusal(_to_unscanned_error(down, tool), context)
            except SecurityBlocked as blocked:
                return _to_refusal(blocked, context)
        return _add_scan_labels(result, going, coming)

    async def _scan_arguments(
        self, tool: ToolSpec, arguments: JsonObject, context: CallContext, flags: ScanDirections
    ) -> ScanOutcome:
        """Scan the arguments. Raises if the call must not be made."""
        try:
            going = await self._scan(arguments, "input", tool, context) if flags.input else ScanOutcome()
            if flags.output:
                self.guard.expect_ready(self.guard.rules_of(context))
        except ScannerDown as down:
            raise ScannerDown(
                f"This was not done, because it could not be scanned. {down.message}",
                hint=f"{tool.name} was not called, because nothing passes unscanned. {down.hint or ''}".rstrip(),
            ) from down
        if going.risk == "high":
            raise SecurityBlocked(
                "This was not done: to the guardian it looks like an attack.",
                hint=f"{tool.name} was not called: the guardian found {describe_findings(going)} of its arguments.",
            )
        return going

    async def _scan(self, content: object, direction: Direction, tool: ToolSpec, context: CallContext) -> ScanOutcome:
        about: JsonObject = {"call_id": context.call_id} if context.call_id is not None else {}
        subject = ScanSubject(direction, tool.server, tool.name, context.trace_id, about)
        return await self.guard.scan(content, subject, self.guard.rules_of(context))

    async def _scan_error(self, error: AnnabelleError, tool: ToolSpec, context: CallContext) -> AnnabelleError:
        """The error, or one of its class without the server's text: an error can carry instructions for the model."""
        try:
            said = error.message if error.hint is None else f"{error.message}\n{error.hint}"
            found = await self._scan(said, "output", tool, context)
        except ScannerDown:
            return type(error)(
                "It failed, and what was said about it could not be scanned.", hint=f"{tool.name} was called."
            )
        if found.risk != "high":
            return error
        return type(error)(
            "It failed, and the guardian withheld what was said about it.",
            hint=f"The guardian found {describe_findings(found)} in what {tool.name} said.",
        )


def _scannable_content(result: ToolResult) -> object:
    """All of a result that anybody may read, without repeating text that is in the structure too."""
    text, structured = result.text, result.structured
    if result.error is not None and result.error.message not in text:
        return {"text": text, "error": result.error.model_dump(exclude_none=True), "structured": structured}
    if structured is None:
        return text
    if not text or text in structured.values() or _is_same_content(text, structured):
        return structured
    return {"text": text, "structured": structured}


def _is_same_content(text: str, structured: JsonObject) -> bool:
    """Whether the text is just the structure as JSON, with or without its nulls."""
    if len(text) > _LONGEST_COMPARED or not text.startswith("{"):
        return False
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return parsed in (structured, _drop_none(structured))


def _drop_none(value: object) -> object:
    if isinstance(value, dict):
        entries = cast("JsonObject", value).items()
        return {key: _drop_none(inner) for key, inner in entries if inner is not None}
    if isinstance(value, list):
        return [_drop_none(inner) for inner in cast("list[object]", value)]
    return value


def _raise_if_blocked(coming: ScanOutcome, tool: ToolSpec) -> None:
    if coming.risk == "high":
        raise SecurityBlocked(
            "The guardian withheld what came back: it looks like an attack.",
            hint=f"{tool.name} was called, and the guardian found {describe_findings(coming)}. What the call did stays "
            "done; do not repeat it to see the content.",
        )


def _to_unscanned_error(down: ScannerDown, tool: ToolSpec) -> ScannerDown:
    return ScannerDown(
        f"What came back could not be scanned and is withheld. {down.message}",
        hint=f"{tool.name} was called. What the call did stays done. {down.hint or ''}".rstrip(),
    )


def _to_refusal(blocked: SecurityBlocked, context: CallContext) -> ToolResult:
    """Contains only our own text, so it is trusted."""
    risk: Risk = "none" if isinstance(blocked, ScannerDown) else "high"
    body = blocked.body(context.trace_id)
    return ToolResult.failure(body).model_copy(update={"trust": "trusted", "source": "own", "risk": risk})


def _add_scan_labels(result: ToolResult, going: ScanOutcome, coming: ScanOutcome) -> ToolResult:
    labels: list[Label] = list(result.labels)
    if coming.risk == "medium":
        labels.append("suspicious")
    if going.unscanned or coming.unscanned:
        labels.append("unscanned")
    if coming.risk == result.risk and len(labels) == len(result.labels):
        return result
    return result.model_copy(update={"risk": coming.risk, "labels": tuple(dict.fromkeys(labels))})


@dataclass(frozen=True, slots=True)
class LabelResult:
    """`traits` are the reviewed facts about a built-in tool. `vouched`: the owner trusts that server to say what its
    ids stand for; its content stays untrusted.

    Only the hub's own tools, servers that declare provenance, and tools such as clocks and sums return trusted results.
    """

    inner: ToolClient
    traits: ToolTraits | None
    vouched: bool = False

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        result = await self.inner.call(tool, arguments, context)
        traits = self.traits or ToolTraits()
        # Tools of the hub label their own results: a subagent's report is not the hub's own text.
        own = traits.trusted and tool.server != NATIVE
        labels: list[Label] = [*result.labels, *context.labels]
        if traits.private or "read_private" in traits.classes:
            labels.append("private")
        if self.vouched:
            labels.append("vouched")
        known: dict[str, object] = {"source": traits.source, "labels": tuple(dict.fromkeys(labels))}
        if own:
            known["trust"] = "trusted"
        return result.model_copy(update=known)
