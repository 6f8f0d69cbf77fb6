"""agents.json: what is read, what is refused, and what stays in force."""

from __future__ import annotations

import json

import pytest

from annabelle.core.config_file import parse_config
from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.hub.agents.config import AgentsConfig, AgentsFile
from annabelle.hub.notices import Notices
from annabelle.toolbox.catalogue import AgentPolicy

TWO = {
    "agents": [
        {"agentId": "annabelle", "port": 0},
        {"agentId": "work", "llmProvider": "anthropic", "model": "m", "temperature": 0.1, "maxSteps": 12},
    ],
    "bindings": [
        {"channel": "telegram", "chatId": "42", "agentId": "work"},
        {"channel": "mail", "chatId": "*", "agentId": "work"},
        {"channel": "mail", "chatId": "7", "agentId": "annabelle"},
    ],
}


@pytest.fixture
def notices() -> Notices:
    return Notices()


@pytest.fixture
def file(home: Home, notices: Notices) -> AgentsFile:
    return AgentsFile(home, Settings.model_validate({}), notices)


def write(home: Home, content: object) -> None:
    home.agents_file.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.mark.req("AGT-01")
@pytest.mark.parametrize(
    ("channel", "chat_id", "agent_id"),
    [
        ("telegram", "42", "work"),
        ("telegram", "43", "annabelle"),
        ("mail", "1", "work"),
        ("mail", "7", "annabelle"),
        ("cli", "42", "annabelle"),
    ],
)
def test_an_exact_binding_wins_over_the_wildcard_and_that_over_the_default(
    channel: str, chat_id: str, agent_id: str
) -> None:
    assert AgentsConfig.model_validate(TWO).agent_for_chat(channel, chat_id).agent_id == agent_id


@pytest.mark.req("AGT-01")
def test_a_binding_to_a_disabled_agent_falls_back() -> None:
    config = json.loads(json.dumps(TWO))
    config["agents"][1]["enabled"] = False
    assert AgentsConfig.model_validate(config).agent_for_chat("telegram", "42").agent_id == "annabelle"


@pytest.mark.req("AGT-01", "LOOP-02")
def test_an_agent_s_settings_reach_its_profile() -> None:
    config = AgentsConfig.model_validate(TWO)
    settings = Settings.model_validate({"thinker_temperature": 0.9, "thinker_llm_provider": "groq"})
    work, default = config.agents[1].as_profile(settings), config.agents[0].as_profile(settings)
    assert (work.provider, work.model, work.temperature, work.limits.max_steps) == ("anthropic", "m", 0.1, 12)
    assert (default.provider, default.model, default.temperature, default.limits.max_steps) == ("groq", None, 0.9, 8)


@pytest.mark.req("LLM-05", "CMP-09")
def test_the_model_for_thinking_is_the_agents_own_else_that_of_the_settings() -> None:
    agents = [{"agentId": "a", "thinking": {"thinkingModel": "deep"}}, {"agentId": "b"}]
    config = AgentsConfig.model_validate({"agents": agents})
    settings = Settings.model_validate({"llm_thinking_model": "small"})
    assert [agent.as_profile(settings).thinking.model for agent in config.agents] == ["deep", "small"]
    assert config.agents[1].as_profile(Settings()).thinking.model == "", "rules alone, which cost no call"


@pytest.mark.req("CMP-09")
def test_an_agents_thinking_is_as_written_and_else_by_rules_above_12000_tokens() -> None:
    written = {
        "enableThinkingPhase": False,
        "thinkingStrategy": "token-budget",
        "compressionThreshold": 900,
        "thinkingModel": "deep",
    }
    agents = [{"agentId": "a", "thinking": written}, {"agentId": "b"}]
    own, default = (
        agent.as_profile(Settings()).thinking for agent in AgentsConfig.model_validate({"agents": agents}).agents
    )
    assert (own.enabled, own.strategy, own.threshold_tokens, own.model) == (False, "token-budget", 900, "deep")
    assert (default.enabled, default.strategy, default.threshold_tokens) == (True, "adaptive", 12_000)
    assert (default.model, default.note_in_history) == ("", False)


@pytest.mark.req("LOOP-02")
@pytest.mark.parametrize(
    ("written", "calls"),
    [({}, None), ({"profile": "strict"}, 5), ({"maxToolCalls": 9}, 9), ({"profile": "strict", "maxToolCalls": 2}, 2)],
)
def test_a_strict_agent_makes_five_tool_calls_per_turn_unless_told_otherwise(
    written: dict[str, object], calls: int | None
) -> None:
    agent = AgentsConfig.model_validate({"agents": [{"agentId": "a", **written}]}).agents[0]
    assert agent.as_profile(Settings()).limits.max_tool_calls == calls


@pytest.mark.incident("I-06")
def test_an_absent_tool_list_allows_all_and_an_empty_one_nothing() -> None:
    absent, empty = (
        AgentsConfig.model_validate({"agents": [{"agentId": "a", **more}]}).agents[0]
        for more in ({}, {"allowedTools": []})
    )
    assert AgentPolicy(absent.allowed_tools, absent.denied_tools).permits("filer_read_file")
    assert not AgentPolicy(empty.allowed_tools, empty.denied_tools).permits("filer_read_file")


@pytest.mark.req("AGT-01")
@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ('{"agents": [\n{"agentId": "a",}\n]}', "line 2, column", "Expecting property name"),
        ("", "line 1", "Expecting value"),
        ("[]", "agents.json", "object"),
        ("{}", "agents", "Field required"),
        (
            f'{{"agents": [{{"agentId": "a", "costControls": {{"minimumBaselineRate": 1{"0" * 400}}}}}]}}',
            "agents.0.costControls.minimumBaselineRate",
            "less than or equal to",
        ),
        ('{"agents": []}', "agents", "at least 1"),
        ('{"agents": [{"agentId": "A b"}]}', "agents.0.agentId", "pattern"),
        ('{"agents": [{"agentId": "a", "maxSteps": 99}]}', "agents.0.maxSteps", "less than or equal to 50"),
        ('{"agents": [{"agentId": "a", "maxstep": 9}]}', "agents.0.maxstep", "not permitted"),
        ('{"agents": [{"agentId": "a", "llmProvider": "x"}]}', "agents.0.llmProvider", "groq"),
        ('{"agents": [{"agentId": "a"}, {"agentId": "a"}]}', "agents", "named twice"),
        ('{"agents": [{"agentId": "a", "enabled": false}]}', "agents", "enabled"),
        (
            '{"agents": [{"agentId": "a"}], "bindings": [{"channel": "c", "chatId": "1", "agentId": "b"}]}',
            "bindings.0.agentId",
            "no agent b",
        ),
        ("[" * 100_000, "agents.json", ""),
    ],
)
def test_a_bad_config_is_refused_with_its_place_and_reason(text: str, place: str, reason: str) -> None:
    with pytest.raises(ConfigMistake) as refused:
        parse_config(AgentsConfig, text, "agents.json")
    assert place in refused.value.message
    assert reason in refused.value.message


@pytest.mark.req("AGT-01")
def test_without_a_file_there_is_one_agent_from_the_settings(file: AgentsFile) -> None:
    config = file.load()
    assert [agent.agent_id for agent in config.agents] == ["annabelle"]
    assert config.default.port == 8006


@pytest.mark.req("AGT-01")
@pytest.mark.incident("I-18")
def test_a_bad_file_at_start_leaves_the_last_good_one_in_force(home: Home, file: AgentsFile, notices: Notices) -> None:
    write(home, TWO)
    file.load()
    write(home, "{ broken")
    config = file.load()
    assert [agent.agent_id for agent in config.agents] == ["annabelle", "work"]
    assert [notice.topic for notice in notices.all()] == ["agents_config"]
    assert "line 1" in notices.all()[0].text


@pytest.mark.req("AGT-01")
def test_a_bad_file_at_the_very_first_start_is_refused(home: Home, file: AgentsFile) -> None:
    write(home, "{ broken")
    with pytest.raises(ConfigMistake, match="line 1"):
        file.load()
    home.agents_file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigMistake, match="UTF-8"):
        file.load()


@pytest.mark.req("AGT-01")
def test_a_change_is_seen_once_and_a_bad_change_only_noted(home: Home, file: AgentsFile, notices: Notices) -> None:
    write(home, TWO)
    file.load()
    assert file.load_if_changed() is None
    write(home, "nonsense, longer than before it was" * 3)
    assert file.load_if_changed() is None
    assert notices.all()[0].level == "error"
    one = {"agents": [{"agentId": "only"}]}
    write(home, one)
    changed = file.load_if_changed()
    assert changed is not None
    assert changed.default.agent_id == "only"
    assert notices.all() == []
    assert file.load_if_changed() is None
