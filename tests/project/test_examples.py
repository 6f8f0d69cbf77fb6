"""The example files work: each is read the way Annabelle reads it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from annabelle.core.config_file import parse_config
from annabelle.core.home import HOME_VARIABLE, Home
from annabelle.core.settings import Settings, load_settings
from annabelle.hub.agents.config import AgentsConfig
from annabelle.hub.security.users_file import read_users
from annabelle.servers.filer.server import build
from annabelle.toolbox.catalogue import AgentPolicy
from annabelle.toolbox.external.entries import read_entries


@pytest.fixture
def examples(root: Path) -> Path:
    return root / "docs" / "examples"


def test_the_agents_are_understood_and_the_bound_chat_finds_its_agent(examples: Path):
    config = parse_config(AgentsConfig, (examples / "agents.json").read_text(), "agents.json")
    assert config.agent_for_chat("cli", "library").agent_id == "librarian"
    assert config.agent_for_chat("cli", "terminal").agent_id == "annabelle"


def test_the_agent_that_never_changes_anything_may_only_read(
    examples: Path, monkeypatch: pytest.MonkeyPatch, home: Home
):
    monkeypatch.setenv(HOME_VARIABLE, str(home.root))
    librarian = parse_config(AgentsConfig, (examples / "agents.json").read_text(), "agents.json").agent_for_chat(
        "cli", "library"
    )
    policy = AgentPolicy(librarian.allowed_tools, librarian.denied_tools)
    tools = build().tools.items()
    assert [name for name, tool in tools if policy.permits(f"filer_{name}") != tool.annotations.read_only] == []


def test_every_external_server_is_understood(examples: Path):
    environment = {"HOME": "/home/ada", "TICKETS_TOKEN": "secret", "PATH": "/usr/bin"}
    reading = read_entries((examples / "external-mcps.json").read_text(), environment, frozenset({"filer"}), 30)
    assert reading.mistakes == ()
    assert set(reading.servers) == {"time", "git", "tickets"}
    assert [name for name, server in reading.servers.items() if server.problem and server.url] == []


def test_the_people_are_understood(examples: Path):
    users = read_users(examples / "users.json")
    assert [(user.id, bool(user.allowed_tools)) for user in users.users] == [("ada", False), ("grace", True)]
    assert [(one.user_id, one.kind) for one in users.tokens] == [("owner", "agent"), ("ada", "device")]


def test_every_example_setting_exists_and_is_valid(examples: Path, home: Home):
    shutil.copy(examples / "settings.env", home.settings_file)
    assert load_settings(home).user_name == "Ada"
    names = [
        line.partition("=")[0] for line in home.settings_file.read_text().splitlines() if "=" in line and line[0] != "#"
    ]
    assert [name for name in names if name.lower() not in Settings.model_fields] == []


def test_every_example_is_named_in_their_readme(examples: Path):
    page = (examples / "README.md").read_text()
    assert [path.name for path in examples.iterdir() if path.name != "README.md" and path.name not in page] == []
