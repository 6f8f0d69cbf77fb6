"""A change of agents.json on a bad day."""

from __future__ import annotations

import json
from typing import cast

import pytest

from annabelle.core.errors import NotFound, OperatorMistake
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.hub.agents import manager as module
from annabelle.hub.agents.config import AgentsFile
from annabelle.hub.agents.halts import Halts
from annabelle.hub.agents.launcher import ThinkerLauncher
from annabelle.hub.agents.manager import AgentManager
from annabelle.hub.agents.registry import AgentRegistry
from annabelle.hub.notices import Notices
from annabelle.store.database import Database, sqlite_url


@pytest.mark.req("AGT-01")
async def test_an_agent_whose_folder_can_not_be_made_is_still_known(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, notices = Settings.model_validate({}), Notices()
    database = await Database.open(sqlite_url(home.database_file))
    agents = AgentManager(
        settings,
        AgentRegistry(AgentsFile(home, settings, notices)),
        Halts(home.halts_file),
        cast("ThinkerLauncher", None),
        database,
        notices,
    )
    agents._apply()

    def full(_home: Home, _agent_id: str) -> None:
        raise OperatorMistake("The disk is full.")

    monkeypatch.setattr(module, "seed_agent", full)
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": "annabelle"}, {"agentId": "work"}]}))
    with pytest.raises(OperatorMistake):
        await agents._reload()
    assert [status.agent_id for status in agents.statuses()] == ["annabelle", "work"]
    await database.close()


@pytest.mark.req("AGT-01")
async def test_an_agent_that_was_taken_out_is_not_named_among_those_there_are(home: Home) -> None:
    settings, notices = Settings.model_validate({}), Notices()
    database = await Database.open(sqlite_url(home.database_file))
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": "annabelle"}, {"agentId": "work"}]}))
    agents = AgentManager(
        settings,
        AgentRegistry(AgentsFile(home, settings, notices)),
        Halts(home.halts_file),
        cast("ThinkerLauncher", None),
        database,
        notices,
    )
    agents._apply()
    home.agents_file.write_text(json.dumps({"agents": [{"agentId": "annabelle"}]}))
    await agents._reload()
    with pytest.raises(NotFound) as gone:
        agents.registry.agent("work")
    assert gone.value.hint == "There are: annabelle."
    await database.close()
