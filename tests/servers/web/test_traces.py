"""What was typed does not stay in the browser's profile; logins do."""

import json
from pathlib import Path

import pytest

from annabelle.servers.web.browser_launcher import disable_form_memory, remove_typed_traces

pytestmark = pytest.mark.req("SRV-BRW", "POL-06")


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """As a browser leaves it."""
    for name in ("Sessions/Session_1", "Cache/Cache_Data/x", "History", "History-journal", "Cookies", "Login State"):
        file = tmp_path / "Default" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    return tmp_path


def test_what_repeats_typed_words_goes_and_logins_stay(profile: Path):
    remove_typed_traces(profile)
    assert sorted(path.name for path in (profile / "Default").iterdir()) == ["Cookies", "Login State"]


def test_forms_are_not_remembered_and_other_preferences_stay(profile: Path):
    file = profile / "Default" / "Preferences"
    file.write_text(json.dumps({"autofill": {"enabled": True, "kept": 1}, "zoom": 2}))
    disable_form_memory(profile)
    known = json.loads(file.read_text())
    assert known["autofill"] == {"enabled": False, "kept": 1, "profile_enabled": False, "credit_card_enabled": False}
    assert (known["zoom"], known["credentials_enable_service"]) == (2, False)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"autofill": 7}'])
def test_damaged_preferences_are_made_anew(profile: Path, damage: str):
    file = profile / "Default" / "Preferences"
    file.write_text(damage)
    disable_form_memory(profile)
    assert json.loads(file.read_text())["autofill"]["enabled"] is False


def test_a_profile_that_is_not_there_yet_gets_its_preferences(tmp_path: Path):
    disable_form_memory(tmp_path / "new")
    assert (tmp_path / "new" / "Default" / "Preferences").exists()
