"""A change of agents.json on a bad day."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import cast

import pytest

from annabelle.core.errors import NotFound, OperatorMistake
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.hub.agents import manager as module
from annabelle.hub.agents.client import ThinkerClient
from annabelle.hub.agents.config import AgentsFile
from annabelle.hub.agents.halts import Halts
from annabelle.hub.agents.launcher import ThinkerLauncher
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.agents.runner import cancel_owed_turns
from annabelle.hub.notices import Notices
from annabelle.store.database import Database, sqlite_url


@pytest.fixture
async def agents(home: Home) -> AsyncIterator[AgentManager]:
    settings, notices = Settings.model_validate({}), Notices()
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": "annabelle"}, {"agentId": "work"}]}))
    registry, halts = AgentRegistry(AgentsFile(home, settings, notices)), Halts(home.halts_file)
    database = await Database.open(sqlite_url(home.database_file))
    made = AgentManager(settings, registry, halts, cast("ThinkerLauncher", None), database, notices)
    made._apply()
    yield made
    await database.close()


@pytest.mark.req("AGT-01")
async def test_an_agent_whose_folder_can_not_be_made_is_still_known(
    agents: AgentManager, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_home: Home, _agent_id: str) -> None:
        raise OperatorMistake("The disk is full.")

    monkeypatch.setattr(module, "seed_agent", full)
    names = ["annabelle", "work", "new"]
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": name} for name in names]}))
    with pytest.raises(OperatorMistake):
        await agents._reload()
    assert [status.agent_id for status in agents.statuses()] == names


@pytest.mark.req("AGT-01")
async def test_an_agent_that_was_taken_out_is_not_named_among_those_there_are(agents: AgentManager, home: Home) -> None:
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": "annabelle"}]}))
    await agents._reload()
    with pytest.raises(NotFound) as gone:
        agents.registry.agent("work")
    assert gone.value.hint == "There are: annabelle."


@pytest.mark.req("AGT-06")
async def test_a_turn_that_was_given_up_is_resumed_by_no_later_process(agents: AgentManager, home: Home) -> None:
    async with agents.turn("annabelle") as runner:
        await runner.give_up("msg_1")
    later = Halts(home.halts_file)
    assert later.owed_cancels("annabelle") == ("msg_1",)
    cancelled: list[str] = []

    class Thinker:
        async def cancel(self, message_id: str) -> None:
            cancelled.append(message_id)

    await cancel_owed_turns(later, "annabelle", cast("ThinkerClient", Thinker()))
    assert cancelled == ["msg_1"]
    assert Halts(home.halts_file).owed_cancels("annabelle") == ()
