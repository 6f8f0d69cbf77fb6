"""Asks an agent's thinker a question that is no turn, however often its process dies meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from annabelle.core.contract import ExtractBrief, ExtractResult, TidyBrief, TidyResult
from annabelle.core.errors import Unavailable
from annabelle.hub.agents.client import ThinkerClient, ThinkerGone
from annabelle.hub.agents.manager import AgentManager

T = TypeVar("T")
_log = logging.getLogger(__name__)
DEATHS: Final = 5


class Thinking:
    """Raises AgentPaused when the agent may not be asked, and Unavailable when it could not answer."""

    def __init__(self, agents: AgentManager) -> None:
        self._agents = agents

    async def extract(self, agent_id: str, brief: ExtractBrief) -> ExtractResult:
        return await self._ask(agent_id, lambda client: client.extract(brief))

    async def tidy(self, agent_id: str, brief: TidyBrief) -> TidyResult:
        return await self._ask(agent_id, lambda client: client.tidy(brief))

    async def clear_session(self, agent_id: str, thread_id: str) -> None:
        await self._ask(agent_id, lambda client: client.clear_session(thread_id))

    async def _ask(self, agent_id: str, question: Callable[[ThinkerClient], Awaitable[T]]) -> T:
        async with self._agents.turn(agent_id) as runner:
            for _ in range(DEATHS):
                client = await runner.ensure()
                try:
                    answer = await question(client)
                except ThinkerGone as gone:
                    # The question has an id, so the next process is asked the same without paying twice.
                    _log.warning("The agent %s did not answer a question: %s", agent_id, gone.message)
                    await runner.unanswered(client)
                else:
                    runner.restarts.worked()
                    return answer
        raise Unavailable(f"The agent {agent_id} died again and again over a question.")
