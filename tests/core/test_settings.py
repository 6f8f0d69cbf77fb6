"""A setting comes from the environment, else from the home, else from its default; a bad one is named."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home
from annabelle.core.settings import Settings, load_settings


def test_the_environment_wins_over_the_home_and_the_home_over_the_default(home: Home, monkeypatch: pytest.MonkeyPatch):
    assert load_settings(home).annabelle_port == 8010
    home.settings_file.write_text("ANNABELLE_PORT=9000\nUSER_NAME='Ada Lovelace'\n")
    assert load_settings(home).annabelle_port == 9000
    assert load_settings(home).user_name == "Ada Lovelace"
    monkeypatch.setenv("ANNABELLE_PORT", "9001")
    assert load_settings(home).annabelle_port == 9001


@pytest.mark.req("PKG-02")
@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("ANNABELLE_PORT", "99999", "65535"),
        ("ANNABELLE_PORT", "eighty", "integer"),
        ("THINKER_TEMPERATURE", "3", "less than or equal to 2"),
        ("SQLITE_SYNCHRONOUS", "MAYBE", "'NORMAL' or 'FULL'"),
        ("RETRY_BASE_SECONDS", "0", "greater than 0"),
        ("TEMP_CLEANUP_DAYS", "0", "greater than 0"),
    ],
)
def test_a_bad_setting_is_named_with_what_is_allowed(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str, value: str, allowed: str
):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigMistake) as caught:
        load_settings(home)
    assert name in caught.value.message
    assert allowed in caught.value.message
    assert caught.value.field == name
    assert caught.value.exit_code == 2


def test_a_bad_secret_is_not_repeated_in_the_message(home: Home):
    home.settings_file.write_bytes(b"ANNABELLE_PORT=hunter2hunter2\n")
    with pytest.raises(ConfigMistake) as caught:
        load_settings(home)
    assert "hunter2" not in caught.value.message


def test_an_empty_value_is_no_value(home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANNABELLE_PORT", "")
    monkeypatch.setenv("GROQ_API_KEY", "")
    settings = load_settings(home)
    assert settings.annabelle_port == 8010
    assert settings.groq_api_key is None
    home.settings_file.write_text("ANNABELLE_PORT=9000\nGROQ_API_KEY=\n")
    assert load_settings(home).annabelle_port == 9000, "the home has one"


@pytest.mark.req("TRC-03")
def test_a_key_does_not_show_when_settings_are_printed(home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GROQ_API_KEY", "gsk-lovelace1815")
    settings = load_settings(home)
    assert isinstance(settings.groq_api_key, SecretStr)
    assert "lovelace" not in repr(settings)


@pytest.mark.req("PKG-02")
def test_a_settings_file_that_is_no_text_is_named(home: Home):
    home.settings_file.write_bytes(b"\xff\xfe\x00bad")
    with pytest.raises(ConfigMistake, match="can not be read") as caught:
        load_settings(home)
    assert str(home.settings_file) in caught.value.message


@pytest.mark.parametrize("content", [b"=\n===\n", b"A B C\n\x00", b"UNKNOWN=1\nANNABELLE_PORT\n"])
def test_lines_that_are_no_settings_are_passed_over(home: Home, content: bytes):
    home.settings_file.write_bytes(content + b"\nUSER_NAME=Ada\n")
    assert load_settings(home).user_name == "Ada"


def test_every_setting_says_what_it_is_for():
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


@pytest.mark.req("MEM-07")
def test_facts_are_learnt_after_five_idle_minutes_and_only_sure_ones():
    settings = Settings()
    assert settings.fact_extraction_enabled
    assert (settings.fact_extraction_idle_seconds, settings.fact_extraction_confidence) == (300, 0.7)
