"""A server's settings: its own variables, the defaults of all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home
from annabelle.servers.kit import own_settings

pytestmark = pytest.mark.req("SRV-ALL")


def test_a_variable_is_read_and_all_others_are_defaults(monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    (home.config / "settings.env").write_text("BRAVE_API_KEY=of-another-server\n")
    monkeypatch.setenv("BRAVE_RATE_LIMIT_MS", "250")
    settings = own_settings()
    assert settings.brave_rate_limit_ms == 250
    assert settings.brave_api_key is None, "what the manifest does not name never reaches a server"
    assert settings.web_fetch_robots is True


def test_a_secret_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", "do-not-show-this-1")
    settings = own_settings()
    assert settings.brave_api_key is not None
    assert settings.brave_api_key.get_secret_value() == "do-not-show-this-1"
    assert "do-not-show-this-1" not in repr(settings)


@pytest.mark.parametrize(("name", "value"), [("BRAVE_RATE_LIMIT_MS", "soon"), ("WEB_FETCH_MAX_BYTES", "3")])
def test_a_wrong_value_names_the_variable_and_not_the_value(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigMistake, match=f"{name} is not valid") as caught:
        own_settings()
    assert caught.value.field == name
    assert value not in caught.value.message.replace(name, "").split()
