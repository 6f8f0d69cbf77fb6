"""`/traces`: the turns of late, and one of them step by step from the trace file (TRC-04, CMP-06)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final, cast

from fastapi import Path, Query
from pydantic import Field
from sqlalchemy import Connection

from annabelle.core.errors import NotFound
from annabelle.core.messages import MessageSource, MessageState
from annabelle.core.tools import JsonObject
from annabelle.core.trace import read_trace
from annabelle.core.trace_export import TraceSpan, parse_spans
from annabelle.core.trace_summary import summarize_turn
from annabelle.hub.api.endpoint import ID_SHAPE, ApiAnswer, ApiRouter, Caller, TheHub, document
from annabelle.hub.api.threads import MessageView
from annabelle.hub.context import HubContext
from annabelle.hub.telemetry.span_content import StoredSpanContent
from annabelle.store import ledger, messages
from annabelle.store.ledger import UsageTotal
from annabelle.store.messages import StoredMessage, TracedMessage

router = ApiRouter("traces")
_SHOWN_CHARS: Final = 160
_LARGEST: Final = 2**63 - 1


class TracedTurn(ApiAnswer):
    """One message and what its turn took. Costs are unknown (null) where none was ever stated."""

    trace_id: str
    message_id: str
    thread_id: str
    position: int
    agent_id: str
    channel: str
    source: MessageSource
    state: MessageState
    text: str = Field(description="How the message begins")
    created_at: datetime
    answered_at: datetime | None
    model_calls: int = 0
    unpriced: int = Field(default=0, description="Calls whose price is not known")
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class TracedTurns(ApiAnswer):
    turns: list[TracedTurn] = Field(description="The newest first")


@router.get("/traces", **document("Turns of late"))
async def list_traces(
    hub: TheHub,
    caller: Caller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[int | None, Query(ge=1, le=_LARGEST, description="Only those before this position")] = None,
) -> TracedTurns:
    """Your own turns, also those that skills, goals and tasks caused. A trace goes when its file has been rotated."""

    def read(conn: Connection) -> tuple[list[TracedMessage], dict[str, UsageTotal]]:
        found = messages.list_traced(conn, caller.user_id, limit, before)
        if not found:
            return [], {}
        since = min(one.created_at for one in found)
        return found, ledger.sum_trace_usage(conn, caller.user_id, [one.trace_id or "" for one in found], since)

    found, totals = await hub.storage.database.read(read)
    return TracedTurns(turns=[_to_turn(one, totals.get(one.trace_id or "")) for one in found])


def _to_turn(message: TracedMessage, total: UsageTotal | None) -> TracedTurn:
    used = {} if total is None else total.usage.model_dump() | {"model_calls": total.calls, "unpriced": total.unpriced}
    text = " ".join(message.content.split())[:_SHOWN_CHARS]
    return TracedTurn.from_row(message, message_id=message.id, text=text, **used)


class TraceEvent(ApiAnswer):
    """One thing that happened. What took time is recorded when it ended."""

    component: str = Field(examples=["hub", "thinker"])
    event: str = Field(examples=["model.called", "tool.finished", "thinking.done"])
    began_at: datetime
    offset_ms: float = Field(description="Since the beginning of the trace")
    duration_ms: float
    data: JsonObject = Field(description="Names, numbers and ids")
    content: JsonObject = Field(
        description="What was said, given to a tool and returned, in the words of OpenTelemetry's GenAI conventions;"
        " only of turns and tool calls, and as long as it is stored"
    )


class TraceNote(ApiAnswer):
    heading: str = Field(examples=["Layers", "Tools", "Thinking", "Model", "Call", "Scan", "Total"])
    text: str


class TraceView(ApiAnswer):
    """One trace, step by step."""

    trace_id: str
    began_at: datetime
    duration_ms: float
    messages: list[MessageView] = Field(description="Those whose turns these were")
    events: list[TraceEvent] = Field(description="In the order in which they began")
    summary: list[TraceNote] = Field(description="What the turn was made of, in words")


@router.get("/traces/{trace_id}", **document("One turn, step by step", 404))
async def show_trace(
    trace_id: Annotated[str, Path(pattern=ID_SHAPE, examples=["tr_01k9zq3v7k0000000000000000"])],
    hub: TheHub,
    caller: Caller,
) -> TraceView:
    """What happened when: prompt layers, tools, compression, model calls, tool calls, scans, tokens and money."""
    spans = parse_spans(await asyncio.to_thread(read_trace, hub.base.home.traces_file, trace_id))
    ids = {str(found) for span in spans if (found := span.data.get("message_id"))}
    involved = await hub.storage.database.read(lambda conn: messages.list_by_ids(conn, ids))
    own = [message for message in involved if message.user_id == caller.user_id]
    if not spans or (involved and not own):
        raise NotFound(
            f"Nothing is recorded of the trace {trace_id}.", hint="Traces are kept until their files are full."
        )
    began, ended = min(span.began for span in spans), max(span.ended for span in spans)
    return TraceView(
        trace_id=trace_id,
        began_at=began,
        duration_ms=_to_milliseconds(began, ended),
        messages=[MessageView.from_message(one) for one in own],
        events=await _load_events(hub, spans, own, began),
        summary=[TraceNote(heading=heading, text=hub.base.redact(text)) for heading, text in summarize_turn(spans)],
    )


async def _load_events(
    hub: HubContext, spans: Sequence[TraceSpan], own: Sequence[StoredMessage], start: datetime
) -> list[TraceEvent]:
    content, ids = StoredSpanContent(hub.storage.database, hub.base.redact), {message.id for message in own}
    events: list[TraceEvent] = []
    for span in spans:
        # A call's id begins with the id of its message.
        about = str(span.data.get("message_id") or span.data.get("call_id") or "").partition(":")[0]
        said = await content.describe(span) if about in ids else {}
        # Masked once more: a secret may have been learnt since it was written.
        masked = cast("JsonObject", hub.base.redact.redact_data({"data": dict(span.data), "content": said}))
        event = TraceEvent.from_row(
            span,
            began_at=span.began,
            offset_ms=_to_milliseconds(start, span.began),
            duration_ms=_to_milliseconds(span.began, span.ended),
            **masked,
        )
        events.append(event)
    return events


def _to_milliseconds(start: datetime, end: datetime) -> float:
    return round((end - start).total_seconds() * 1000, 1)
