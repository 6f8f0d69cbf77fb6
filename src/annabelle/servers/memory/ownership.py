"""Whose memory a call is about, and where what it brings came from: the hub's word, never an argument's (I-30)."""

from __future__ import annotations

import re

from annabelle.core.errors import InvalidArguments, NotAllowed
from annabelle.core.memory import Trust
from annabelle.core.messages import OWNER
from annabelle.core.tools import JsonObject
from annabelle.servers.kit import Call
from annabelle.store.memory.owner import Owner

_OWN = ("", "main")
"""What an agent may write for itself; skills made elsewhere say main."""

_AGENT_ID = re.compile(r"[\w.-]{1,64}")


def owner_of(call: Call, asked: str | None = None) -> Owner:
    """The owner a call works for. People may name another agent of theirs; an agent has no memory but its own."""
    if not call.user_id or not call.agent_id:
        raise NotAllowed("This call does not say whose memory it is about.", hint="Ask through the hub.")
    if asked is None or asked in _OWN or asked == call.agent_id:
        return Owner(call.user_id, call.agent_id)
    if call.caller not in ("api", "cli", "hub"):
        raise NotAllowed(
            "An agent works on its own memory, not on that of another.", hint="Leave agent_id out.", field="agent_id"
        )
    if not _AGENT_ID.fullmatch(asked):
        raise InvalidArguments("agent_id is not the id of an agent.", field="agent_id")
    return Owner(call.user_id, asked)


def origin_of(call: Call) -> tuple[Trust, JsonObject]:
    """How far the content of this call may be trusted, and what is kept about where it came from (MEM-09).

    What an agent brings is untrusted unless the hub vouches for it; people speak for themselves.
    """
    trust = call.trust or ("trusted" if call.caller in ("api", "cli", "hub") else "untrusted")
    facts: JsonObject = {
        "kind": call.caller or "agent",
        "message_id": call.message_id,
        "thread_id": call.thread_id,
        "channel": call.channel,
        "call_id": call.call_id,
        "tools": list(call.origins) or None,
    }
    return trust, {name: value for name, value in facts.items() if value is not None}


def require_home_owner(call: Call) -> None:
    """Backups hold everyone's rows, so only the owner of the home may see or restore them."""
    if call.user_id != OWNER:
        raise NotAllowed("Only the owner of this home may do that.")
