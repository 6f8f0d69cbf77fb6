"""Every call is noted with how it ended, and never with what was in it."""

from __future__ import annotations

import asyncio

import pytest

from annabelle.core.errors import NotAllowed
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import AuditKind
from annabelle.toolbox.middleware.record import AuditCall

TOOL = ToolSpec(name="filer_read", server="filer", original_name="read", description="", input_schema={})
CONTEXT = CallContext(caller="agent", agent_id="annabelle", user_id="owner", call_id="msg_1:1:0", trace_id="tr_1")


class Kept:
    def __init__(self) -> None:
        self.notes: list[tuple[AuditKind, JsonObject, str | None]] = []

    def note(self, kind: AuditKind, facts: JsonObject, trace_id: str | None = None) -> None:
        self.notes.append((kind, facts, trace_id))


class Ends:
    """A server whose call ends as it is told."""

    def __init__(self, end: ToolResult | BaseException) -> None:
        self._end = end

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        if isinstance(self._end, BaseException):
            raise self._end
        return self._end


@pytest.mark.req("TRU-08", "GRD-08")
@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (ToolResult(text="the letter"), "ok"),
        (ToolResult(text="the letter", replayed=True), "replayed"),
        (ToolResult(text="waits", approval_id="apr_1"), "waits"),
        (ToolResult.failure(NotAllowed("no").body()), "not_allowed"),
        (NotAllowed("no"), "not_allowed"),
        (asyncio.CancelledError(), "cancelled"),
        (RuntimeError("a mistake"), "failed"),
    ],
)
async def test_a_call_is_noted_with_its_outcome_and_without_its_content(
    end: ToolResult | BaseException, outcome: str
) -> None:
    kept = Kept()
    calling = AuditCall(Ends(end), kept).call(TOOL, {"path": "the letter"}, CONTEXT)
    if isinstance(end, BaseException):
        with pytest.raises(type(end)):
            await calling
    else:
        assert await calling == end
    [(kind, facts, trace_id)] = kept.notes
    assert (kind, trace_id) == ("tool", "tr_1")
    assert (facts["server"], facts["tool"], facts["caller"], facts["agent_id"], facts["user_id"]) == (
        "filer",
        "filer_read",
        "agent",
        "annabelle",
        "owner",
    )
    assert facts["outcome"] == outcome
    assert "the letter" not in str(facts)
