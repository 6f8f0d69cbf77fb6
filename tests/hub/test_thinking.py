"""A question to an agent's thinker survives the thinker's death, and is not asked of an agent that is paused."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest

from annabelle.core.contract import ExtractBrief, ExtractResult, PastTurn
from annabelle.core.errors import AgentPaused, Unavailable
from annabelle.core.messages import now
from annabelle.hub.agents.client import ThinkerGone, ThinkerRefused
from annabelle.hub.agents.thinker_calls import DEATHS, ThinkerQuestions

BRIEF = ExtractBrief(
    extraction_id="learn:msg_1:1.1",
    user_id="owner",
    trace_id="tr_1",
    turns=(PastTurn(conversation_id=1, at=now(), user="hello", assistant="hi"),),
)


class Agent:
    """Its processes die before they answer, so many of them; each is a new one."""

    def __init__(self, deaths: int, refusal: Exception | None = None, paused: bool = False) -> None:
        self.deaths, self.refusal, self.paused = deaths, refusal, paused
        self.asked: list[str] = []
        self.buried = 0
        self.restarts = self
        self.well = False

    @contextlib.asynccontextmanager
    async def turn(self, agent_id: str) -> AsyncIterator[Agent]:
        if self.paused:
            raise AgentPaused(f"{agent_id} is paused.")
        yield self

    async def ensure(self) -> Agent:
        return self

    async def extract(self, brief: ExtractBrief) -> ExtractResult:
        self.asked.append(brief.extraction_id)
        if self.refusal is not None:
            raise self.refusal
        if len(self.asked) <= self.deaths:
            raise ThinkerGone("The agent does not answer.")
        return ExtractResult()

    async def unanswered(self, client: object) -> None:
        self.buried += 1

    def worked(self) -> None:
        self.well = True


@pytest.mark.req("MEM-07")
async def test_the_next_process_is_asked_the_same_question_under_the_same_id() -> None:
    agent = Agent(deaths=2)
    assert await ThinkerQuestions(agent).extract("annabelle", BRIEF) == ExtractResult()  # type: ignore[arg-type]
    assert agent.asked == [BRIEF.extraction_id] * 3
    assert (agent.buried, agent.well) == (2, True)


@pytest.mark.req("MEM-07")
async def test_an_agent_that_dies_of_every_question_is_given_up_for_now() -> None:
    agent = Agent(deaths=100)
    with pytest.raises(Unavailable, match="again and again"):
        await ThinkerQuestions(agent).extract("annabelle", BRIEF)  # type: ignore[arg-type]
    assert len(agent.asked) == DEATHS


@pytest.mark.req("MEM-07", "AGT-05")
async def test_a_paused_agent_is_not_asked_and_a_refusal_is_passed_on() -> None:
    paused = Agent(deaths=0, paused=True)
    with pytest.raises(AgentPaused):
        await ThinkerQuestions(paused).extract("annabelle", BRIEF)  # type: ignore[arg-type]
    assert paused.asked == []
    refusing = Agent(deaths=0, refusal=ThinkerRefused("The model is down."))
    with pytest.raises(ThinkerRefused):
        await ThinkerQuestions(refusing).extract("annabelle", BRIEF)  # type: ignore[arg-type]
    assert len(refusing.asked) == 1
