"""What a thinker process, and each server, may know."""

from __future__ import annotations

import pytest

from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.embeddings.metering import LEDGER_TOKEN
from annabelle.hub.agents.launcher import bare_environment, thinker_environment
from annabelle.toolbox.config import builtin_environment, builtin_servers
from annabelle.toolbox.manifest import find_builtins
from support.few_servers import EVERY_SERVER, NAMES

HUB = {
    "PATH": "/bin",
    "HOME": "/home/x",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "ANNABELLE_TOKEN": "the-owner-s-token",
    "ANNABELLE_FAILPOINTS": "/tmp/f",
    "GROQ_API_KEY": "gsk",
    "ANTHROPIC_API_KEY": "ant",
    "COMPATIBLE_BASE_URL": "http://127.0.0.1:1/v1",
    "DATABASE_URL": "postgresql://x",
    "RETRY_BASE_SECONDS": "1",
    "HTTPS_PROXY": "http://proxy",
    "TELEGRAM_BOT_TOKEN": "no",
    "GMAIL_CLIENT_SECRET": "no",
    "AWS_SECRET_ACCESS_KEY": "no",
    "OP_SERVICE_ACCOUNT_TOKEN": "no",
}


@pytest.mark.req("HUB-01")
@pytest.mark.incident("I-11")
def test_a_thinker_gets_its_providers_and_no_other_secret(home: Home) -> None:
    given = thinker_environment(HUB, home)
    assert given["GROQ_API_KEY"] == "gsk"
    assert given["ANTHROPIC_API_KEY"] == "ant"
    assert given["COMPATIBLE_BASE_URL"] == "http://127.0.0.1:1/v1"
    assert given["DATABASE_URL"] == "postgresql://x"
    assert given["ANNABELLE_FAILPOINTS"] == "/tmp/f"
    assert given["ANNABELLE_HOME"] == str(home.root)
    for secret in ("ANNABELLE_TOKEN", "TELEGRAM_BOT_TOKEN", "GMAIL_CLIENT_SECRET", "AWS_SECRET_ACCESS_KEY"):
        assert secret not in given
    assert "no" not in given.values()


KEYS_OF_SERVERS = {
    "guardian": {"ANNABELLE_LEDGER_TOKEN", "COMPATIBLE_API_KEY", "GROQ_API_KEY"},
    "memory": {"ANNABELLE_LEDGER_TOKEN", "COMPATIBLE_API_KEY", "DATABASE_URL", "EMBEDDING_API_KEY", "OPENAI_API_KEY"},
    "onepassword": {"OP_SERVICE_ACCOUNT_TOKEN"},
    "searcher": {"BRAVE_API_KEY"},
}
"""Reviewed: who judges with a model, makes vectors, opens the vault and searches. Nobody else is given a secret."""


@pytest.mark.req("POL-06")
@pytest.mark.incident("I-11")
def test_every_server_gets_the_secrets_it_was_named_for_and_no_other(home: Home) -> None:
    fields = Settings.model_fields.items()
    settings = {name.upper() for name, field in fields if "SecretStr" in str(field.annotation)}
    secrets = {name: f"value of {name}" for name in settings | {LEDGER_TOKEN, "AWS_SECRET_ACCESS_KEY"}}
    assert {"ANNABELLE_TOKEN", "GROQ_API_KEY"} <= secrets.keys()
    servers = find_builtins([builtin_servers()], {**HUB, **secrets, **EVERY_SERVER}, 30)
    assert sorted(server.profile.name for server in servers) == sorted(NAMES)
    for server in servers:
        given = builtin_environment(server.variables, {**HUB, **secrets}, home, "info")
        got = {name for name, value in given.items() if value in secrets.values()}
        assert got == KEYS_OF_SERVERS.get(server.profile.name, set()), server.profile.name
        assert "no" not in given.values()


@pytest.mark.req("HUB-01")
def test_a_spare_process_waits_without_any_secret() -> None:
    assert bare_environment(HUB) == {"PATH": "/bin", "HOME": "/home/x", "LANG": "C.UTF-8", "TZ": "UTC"}
