"""A memory for tests of the hub's side: keeps what it is given, and is away or refuses when told to."""

from __future__ import annotations

from annabelle.core.errors import ErrorBody, ScannerDown, SecurityBlocked, ServerDown
from annabelle.core.messages import now
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trust import Provenance


class StandInMemory:
    """Answers as the memory server does, as far as the hub asks."""

    def __init__(self) -> None:
        self.conversations: dict[tuple[str, str, str], JsonObject] = {}
        self.facts: dict[tuple[str, str, str], JsonObject] = {}
        self.plan: JsonObject = {"facts": [], "actions": []}
        self.applied: list[JsonObject] = []
        self.contexts: list[CallContext] = []
        self.calls: list[str] = []
        self.away = 0
        self.refuses: str | None = None
        self.unscanned = 0
        self.blocked: str | None = None
        """What the guardian on the way to the memory does: can not look so many times, or finds this."""

    async def call(self, name: str, arguments: JsonObject, context: CallContext) -> ToolResult:
        self.calls.append(name)
        self.contexts.append(context)
        if self.away > 0:
            self.away -= 1
            raise ServerDown("Memory is not running.")
        if self.unscanned > 0:
            self.unscanned -= 1
            return ToolResult.failure(ScannerDown("The guardian is not running.").body())
        if self.blocked is not None and self.blocked in str(arguments):
            return ToolResult.failure(SecurityBlocked("The guardian found something.").body())
        if self.refuses is not None and self.refuses in str(arguments):
            return ToolResult.failure(ErrorBody(code="invalid_arguments", message="This looks like a password."))
        answer = getattr(self, name)(arguments, context)
        return ToolResult(text="", structured={"trust": "trusted", **answer})

    def _owner(self, context: CallContext) -> tuple[str, str]:
        assert context.caller == "hub"
        assert context.agent_id is not None
        return context.user_id, context.agent_id

    def memory_store_conversation(self, arguments: JsonObject, context: CallContext) -> JsonObject:
        assert context.message_id is not None
        key = (*self._owner(context), context.message_id)
        provenance = context.provenance or Provenance()
        known = key in self.conversations
        number = len(self.conversations) + 1
        self.conversations.setdefault(key, {**arguments, "id": number, "read": False, "trust": provenance.trust})
        return {"conversation_id": self.conversations[key]["id"], "status": "known" if known else "stored"}

    def memory_list_unextracted(self, arguments: JsonObject, context: CallContext) -> JsonObject:
        session, owner = arguments.get("session_id"), self._owner(context)
        found = [
            {
                "conversation_id": row["id"],
                "message_id": key[2],
                "at": now().isoformat(),
                "user": row["user_message"],
                "assistant": row["agent_response"],
                "trust": row["trust"],
            }
            for key, row in self.conversations.items()
            if key[:2] == owner and not row["read"] and session in (None, row["session_id"])
        ]
        limit = int(str(arguments["limit"]))
        return {"turns": found[-limit:] if session is not None else found[:limit]}

    def memory_mark_extracted(self, arguments: JsonObject, context: CallContext) -> JsonObject:
        marked = arguments["conversation_ids"]
        assert isinstance(marked, list)
        for key, row in self.conversations.items():
            if key[:2] == self._owner(context) and row["id"] in marked:
                row["read"] = True
        return {"marked": len(marked)}

    def memory_list_facts(self, arguments: JsonObject, context: CallContext) -> JsonObject:
        return {"facts": [fact for key, fact in self.facts.items() if key[:2] == self._owner(context)]}

    def memory_store_fact(self, arguments: JsonObject, context: CallContext) -> JsonObject:
        key = (*self._owner(context), str(arguments["fact"]))
        status = "known" if key in self.facts else "stored"
        provenance = context.provenance or Provenance()
        self.facts.setdefault(key, {**arguments, "fact_id": len(self.facts) + 1, "trust": provenance.trust})
        return {"fact_id": self.facts[key]["fact_id"], "status": status}

    def memory_tidy_plan(self, arguments: JsonObject, context: CallContext) -> JsonObject:
        return self.plan

    def memory_apply_tidy(self, arguments: JsonObject, context: CallContext) -> JsonObject:
        self.applied.append(arguments)
        return {"change_id": len(self.applied)}
