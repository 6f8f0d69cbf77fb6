"""What a thinker shows of its providers, and that a temporary one keeps nothing outside its folder."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import text

from annabelle.core.contract import AgentProfile
from annabelle.core.home import Home
from annabelle.store.engine import make_engine
from support.scripted_model import Reply, Rule, ScriptedServer
from thinker.fake_hub import FakeHub
from thinker.thinkers import Thinker, brief


@pytest.mark.req("LLM-06", "THK-01")
def test_the_health_of_each_provider_is_shown(start: Callable[..., Thinker], model: ScriptedServer) -> None:
    thinker = start()
    assert thinker.client.get("/health").json()["providers"] == []
    model.rules(Rule(times=2, reply=Reply.failing(503, "on fire")))
    thinker.ask(brief("hello"))
    (shown,) = thinker.client.get("/health").json()["providers"]
    assert (shown["provider"], shown["state"], shown["errors"]) == ("compatible", "degraded", 1)
    assert "status 503" in shown["last_error"]
    assert shown["next_try_seconds"] is None


@pytest.mark.req("AGT-04")
def test_a_temporary_thinker_leaves_nothing_in_a_shared_database(
    spare: Callable[[], Thinker], hub: FakeHub, home: Home, settings: dict[str, str], postgres_url: str
) -> None:
    profile = AgentProfile(agent_id="tess.sub-0123456789ab", temporary=True)
    thinker = spare().adopt(hub.url, {**settings, "DATABASE_URL": postgres_url}, profile)
    state = thinker.ask(brief("hello"))
    assert state.result is not None
    assert state.result.success
    assert (home.agent(profile.agent_id) / "turns.db").is_file()
    engine = make_engine(postgres_url)
    with engine.connect() as connection:
        schemas = connection.execute(text("select schema_name from information_schema.schemata")).scalars().all()
    engine.dispose()
    assert not [name for name in schemas if name.startswith("turns_")]
