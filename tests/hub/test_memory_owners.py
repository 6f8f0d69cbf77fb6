"""Whose memory the hub's own tools work on: the caller's, and nobody gets at another's by naming it."""

from __future__ import annotations

import json

import pytest

from annabelle.core.errors import NotAllowed, NotFound
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext
from annabelle.hub.agents.config import AgentsFile
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.memory.memory_client import resolve_memory_owner
from annabelle.hub.notices import Notices


@pytest.fixture
def agents(home: Home) -> AgentRegistry:
    home.agents_file.parent.mkdir(parents=True, exist_ok=True)
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": "annabelle"}, {"agentId": "scout"}]}))
    return AgentRegistry(AgentsFile(home, Settings.model_validate({}), Notices()))


@pytest.mark.req("MEM-11")
@pytest.mark.incident("I-30")
async def test_an_agent_learns_and_tidies_in_its_own_memory_only(agents: AgentRegistry) -> None:
    call = CallContext(caller="agent", user_id="ada", agent_id="scout", message_id="msg_1")
    for asked in (None, "", "main", "scout"):
        found = resolve_memory_owner(call, asked, agents)
        assert (found.user_id, found.agent_id, found.message_id) == ("ada", "scout", "msg_1")
    for other in ("annabelle", "nobody"):
        with pytest.raises(NotAllowed, match=f"scout may not touch the memory of {other}"):
            resolve_memory_owner(call, other, agents)


@pytest.mark.req("MEM-11")
@pytest.mark.incident("I-30")
@pytest.mark.parametrize("caller", ["api", "cli"])
async def test_people_may_name_an_agent_there_is_and_stay_themselves(agents: AgentRegistry, caller: str) -> None:
    call = CallContext.model_validate({"caller": caller, "user_id": "ada"})
    assert [resolve_memory_owner(call, asked, agents).agent_id for asked in (None, "main", "scout")] == [
        "annabelle"
    ] * 2 + ["scout"]
    assert resolve_memory_owner(call, "scout", agents).user_id == "ada"
    with pytest.raises(NotFound, match="no agent nobody"):
        resolve_memory_owner(call, "nobody", agents)
