"""A conversation with a person, in any channel."""

from __future__ import annotations

from typing import Final

from annabelle.agents.kind import AgentKind


class ChatKind(AgentKind):
    agent_type = "chat"
    channel: str | None = None


KIND: Final[AgentKind] = ChatKind()
