"""A chat that ends in a new goal: it asks for what is missing and proposes the goal, and the person confirms (AGE-12).

It keeps nothing: each chat starts afresh, and all that is left of it is the goal.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from annabelle.agents.kind import AgentKind, read_prompt
from annabelle.core.contract import TurnLimits
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.store.messages import StoredMessage

CREATE: Final = "create_goal"
_TOOLS: Final = (CREATE, "search_tools")


class GoalCreationKind(AgentKind):
    agent_type = "goal_creation"
    channel: str | None = "goal_creation"

    def load_context(self, conn: Connection, message: StoredMessage) -> JsonObject:
        return {"allowed_tools": _TOOLS}

    def load_terms(
        self, conn: Connection, message: StoredMessage, limits: TurnLimits, settings: Settings
    ) -> JsonObject:
        return {"required_tools": _TOOLS, "instructions": read_prompt("goal_creation")}


KIND: Final[AgentKind] = GoalCreationKind()
