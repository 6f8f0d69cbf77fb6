"""Whose memory a call means: an agent's own, or for people one of their agents' (I-30)."""

from __future__ import annotations

from annabelle.core.errors import NotAllowed
from annabelle.core.tools import CallContext
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.memory.memory_tools import Owned

_OLD_NAME = "main"  # what skills of older systems call the agent they run in


def whose(context: CallContext, asked: str | None, agents: AgentManager) -> Owned:
    """The memory that is meant. The user is who calls, and never an argument."""
    own = context.agent_id or agents.config.default.agent_id
    agent_id = own if asked in (None, "", _OLD_NAME, own) else str(asked)
    if agent_id != own:
        if context.caller == "agent":
            raise NotAllowed(
                f"{own} may not touch the memory of {agent_id}.", hint="Leave agent_id out.", field="agent_id"
            )
        agents.agent(agent_id)  # says which agents there are
    return Owned(
        user_id=context.user_id,
        agent_id=agent_id,
        message_id=context.message_id,
        thread_id=context.thread_id,
        trace_id=context.trace_id,
    )
