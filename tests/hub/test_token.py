"""The owner's token file: made, repaired, or refused with one sentence."""

from __future__ import annotations

import stat

import pytest
from pydantic import SecretStr

from annabelle.core.errors import ConfigMistake, OperatorMistake
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.hub.notices import Notices
from annabelle.hub.security.identities import owner_token

SETTINGS = Settings.model_validate({})


def mode(home: Home) -> int:
    return stat.S_IMODE(home.token_file.stat().st_mode)


@pytest.mark.req("API-01")
def test_the_token_is_made_once_and_only_its_owner_can_read_it(home: Home) -> None:
    token = owner_token(home, SETTINGS, Notices())
    assert len(token) >= 32
    assert mode(home) == 0o600
    assert owner_token(home, SETTINGS, Notices()) == token


@pytest.mark.req("API-01")
@pytest.mark.parametrize("content", [b"", b"short", b"\xff\xfe\x00binary-and-long-enough", b"two words of some length"])
def test_a_damaged_token_file_is_replaced_and_the_owner_sees_it(home: Home, content: bytes) -> None:
    home.token_file.write_bytes(content)
    notices = Notices()
    token = owner_token(home, SETTINGS, notices)
    assert home.token_file.read_text().strip() == token
    assert mode(home) == 0o600
    assert [(notice.level, "damaged" in notice.text) for notice in notices.all()] == [("warning", True)]


@pytest.mark.req("API-01")
def test_a_token_others_could_read_is_closed_again_and_kept(home: Home) -> None:
    token = owner_token(home, SETTINGS, Notices())
    home.token_file.chmod(0o644)
    assert owner_token(home, SETTINGS, Notices()) == token
    assert mode(home) == 0o600


def test_a_token_file_that_can_not_be_read_is_one_clear_sentence(home: Home) -> None:
    home.token_file.mkdir()
    with pytest.raises(OperatorMistake, match="can not be read"):
        owner_token(home, SETTINGS, Notices())


def test_a_configured_token_wins_and_must_be_long_enough(home: Home) -> None:
    assert owner_token(home, Settings(annabelle_token=SecretStr("x" * 20)), Notices()) == "x" * 20
    assert not home.token_file.exists()
    with pytest.raises(ConfigMistake, match="ANNABELLE_TOKEN"):
        owner_token(home, Settings(annabelle_token=SecretStr("short")), Notices())
