"""What a thinker process may know."""

from __future__ import annotations

import pytest

from annabelle.core.home import Home
from annabelle.hub.agents.environment import bare_environment, thinker_environment

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


@pytest.mark.req("HUB-01")
def test_a_spare_process_waits_without_any_secret() -> None:
    assert bare_environment(HUB) == {"PATH": "/bin", "HOME": "/home/x", "LANG": "C.UTF-8", "TZ": "UTC"}
