"""A temporary helper that an agent sends for one task, in a process of its own (AGT-04).

Its turn acts for the message of its parent, so no message of its own is stored.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from pydantic import Field

from annabelle.agents.kind import AgentKind, read_prompt
from annabelle.core.contract import TurnBrief, TurnLimits
from annabelle.core.models import CamelModel
from annabelle.core.tools import CallContext

MAX_STEPS: Final = 20
TOKEN_BUDGET: Final = 60_000
# A subagent reports only to its parent, and has no subagents. find_contact queries servers with the parent's rights,
# which may be wider than its own.
FORBIDDEN_TOOLS: Final = (
    "spawn_subagent",
    "queue_task",
    "get_job_status",
    "send_message",
    "send_telegram",
    "find_contact",
    "memory_store_skill",
    "memory_update_skill",
    "memory_delete_skill",
)
# Its own limit is shorter, so that it can still report its progress.
_OWN_CLOCK: Final = 0.9


class SubagentKind(AgentKind):
    agent_type = "subagent"
    channel: str | None = "subagent"
    conversational = False
    accepts_messages = False


class SubagentRequest(CamelModel):
    """The arguments of `spawn_subagent`."""

    task: str
    allowed_tools: tuple[str, ...] | None = None
    denied_tools: tuple[str, ...] = ()
    timeout_minutes: float = Field(default=5, ge=1, le=30)
    model: str = ""
    token_budget: int = Field(default=TOKEN_BUDGET, ge=1)

    @property
    def seconds(self) -> float:
        return self.timeout_minutes * 60

    def deadline(self, asked_at: datetime) -> datetime:
        return asked_at + timedelta(seconds=self.seconds)


def read_persona(parent_id: str) -> str:
    return read_prompt("subagent").format(parent=parent_id)


def make_brief(
    ask: SubagentRequest, task_id: str, context: CallContext, limits: TurnLimits, tools_version: str
) -> TurnBrief:
    """One turn in its own thread, within the limits of the parent."""
    own: dict[str, object] = {"max_steps": MAX_STEPS, "wall_clock_seconds": ask.seconds * _OWN_CLOCK}
    return TurnBrief(
        message_id=task_id,
        thread_id=task_id,
        trace_id=context.trace_id or "",
        user_id=context.user_id,
        channel=context.channel or "subagent",
        chat_id=context.chat_id or task_id,
        sender_id=context.agent_id or "agent",
        text=ask.task,
        conversational=False,
        limits=limits.model_copy(update=own),
        token_budget=ask.token_budget,
        tools_version=tools_version,
    )


KIND: Final[AgentKind] = SubagentKind()
