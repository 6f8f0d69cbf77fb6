"""Settings are checked before they are written, written whole, and read back as they were meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from annabelle.core.errors import ConfigMistake, NotFound
from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.core.settings_file import SettingsFile, check_value, find_setting


@given(value=st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" "), min_size=1, max_size=40))
def test_any_value_that_is_accepted_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, value: str):
    name, field = find_setting("user_name")
    try:
        check_value(name, field, value)
    except ConfigMistake:
        return
    home = Home(tmp_path_factory.mktemp("home"))
    SettingsFile(home.settings_file).set(name, value)
    assert SettingsFile(home.settings_file).values()["USER_NAME"] == value
    assert load_settings(home).user_name == value


def test_comments_other_lines_and_other_settings_stay(tmp_path: Path):
    file = SettingsFile(tmp_path / "settings.env")
    file.path.write_text("# mine\nexport ANNABELLE_PORT=1\nODD LINE\nUSER_NAME=Ada\n")
    file.set("ANNABELLE_PORT", "2")
    assert file.path.read_text() == "# mine\nODD LINE\nUSER_NAME=Ada\nANNABELLE_PORT=2\n"
    assert file.unset("USER_NAME")
    assert not file.unset("USER_NAME")
    assert file.path.read_text() == "# mine\nODD LINE\nANNABELLE_PORT=2\n"
    assert file.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("ANNABELLE_PORT", "70000", "65535"),
        ("annabelle_port", "x", "integer"),
        ("LOG_LEVEL", "loud", "'debug'"),
        ("USER_NAME", "two\nlines", "one line"),
        ("USER_NAME", "a\x00b", "one line"),
        ("GROQ_API_KEY", "a${HOME}b", "the name of another setting"),
        ("PRIVATE_HOSTS_ALLOWED", "nas.local, http://10.0.0.1", "neither a host nor a network"),
        ("PRIVATE_HOSTS_ALLOWED", "10.0.0.0/99", "neither a host nor a network"),
        ("WEATHER_URL", "api.example.org", "https://example.org"),
        ("SEARXNG_URL", "ftp://search.example", "https://example.org"),
        ("CURRENCY_URL", "https://example.org:port", "https://example.org"),
    ],
)
def test_a_value_that_can_not_be_is_refused_with_the_reason(name: str, value: str, reason: str):
    with pytest.raises(ConfigMistake) as caught:
        check_value(*find_setting(name), value)
    assert reason in caught.value.message
    assert name.upper() in caught.value.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PRIVATE_HOSTS_ALLOWED", "nas.local:8080, 192.168.1.0/24, [::1]:80"),
        ("SEARXNG_URL", "https://me:secret@search.example/path"),
        ("WEATHER_URL", "http://127.0.0.1:8000"),
    ],
)
def test_hosts_and_addresses_that_servers_take_are_accepted(name: str, value: str):
    check_value(*find_setting(name), value)


def test_an_unknown_setting_names_the_closest():
    with pytest.raises(NotFound) as caught:
        find_setting("anabelle_port")
    assert "ANNABELLE_PORT" in (caught.value.hint or "")
