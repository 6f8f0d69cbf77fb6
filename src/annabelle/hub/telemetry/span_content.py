"""What was said in a turn and given to a tool, for exported spans. Only used where the owner turned it on."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import Connection

from annabelle.core.errors import AnnabelleError
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.tools import JsonObject
from annabelle.core.trace_export import TraceSpan
from annabelle.store import messages, threads
from annabelle.store.database import Database


@dataclass(frozen=True, slots=True)
class StoredSpanContent:
    """Reads it from the stored conversation, since the trace file has none of it."""

    database: Database
    redact: Redactor

    async def describe(self, span: TraceSpan) -> JsonObject:
        """Attributes of the GenAI conventions. None where nothing is stored any more."""
        try:
            if span.event == "turn.finished":
                message_id = str(span.data.get("message_id"))
                return await self.database.read(lambda conn: _describe_turn(conn, message_id))
            if span.event in ("tool.finished", "tool.failed") and span.data.get("call_id"):
                call_id = str(span.data["call_id"])
                return await self.database.read(lambda conn: _describe_call(conn, call_id, self.redact))
        except AnnabelleError:
            return {}
        return {}


def _describe_turn(conn: Connection, message_id: str) -> JsonObject:
    message = messages.load_message(conn, message_id)
    answers = "\n\n".join(one.content for one in messages.list_replies(conn, message))
    return {
        "gen_ai.input.messages": _encode_message("user", message.content),
        "gen_ai.output.messages": _encode_message("assistant", answers),
    }


def _encode_message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)


def _describe_call(conn: Connection, call_id: str, redact: Redactor) -> JsonObject:
    message = messages.load_message(conn, call_id.partition(":")[0])
    found: JsonObject = {}
    for event in threads.list_message_events(conn, message.id, message.user_id):
        if event.data.get("call_id") != call_id:
            continue
        if event.type == "tool_start":
            given = redact.redact_data(event.data.get("arguments"))  # by name, too, which the text has not
            found["gen_ai.tool.call.arguments"] = json.dumps(given, ensure_ascii=False)
        elif event.type == "tool_complete":
            found["gen_ai.tool.call.result"] = str(event.data.get("summary") or event.data.get("error") or "")
    return found
