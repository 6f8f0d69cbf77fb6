"""Connected accounts on the disk: whole, for their owner's eyes only, and written out nowhere else."""

from __future__ import annotations

import traceback

import pytest
from pydantic import SecretStr

from annabelle.core.connections import (
    ConnectionFile,
    MailAccount,
    MailServerAddress,
    TelegramAccount,
    connection_file,
    read_connection,
    remove_connection,
    write_connection,
)
from annabelle.core.errors import ConfigMistake, StorageTrouble
from annabelle.core.home import Home

MAIL = MailAccount(
    address="ada@example.org",
    username="ada",
    password=SecretStr("påss"),
    imap=MailServerAddress(host="::1", port=143, security="none"),
    smtp=MailServerAddress(host="smtp.example.org", port=465),
    caldav_url="https://dav.example.org/",
    caldav_password=SecretStr("other"),
)


@pytest.mark.req("SRV-MAI", "SRV-TEL")
def test_an_account_comes_back_as_it_was_kept(home: Home) -> None:
    assert read_connection(home, "mail", MailAccount) is None
    write_connection(home, "mail", MAIL)
    assert read_connection(home, "mail", MailAccount) == MAIL
    file = connection_file(home, "mail")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [one.name for one in file.parent.iterdir()] == ["mail.json"], "nothing half written is left"
    home.connections.chmod(0o755)
    write_connection(home, "mail", MAIL.model_copy(update={"username": "ada2"}))
    assert home.connections.stat().st_mode & 0o777 == 0o700
    assert "påss" not in repr(MAIL) + MAIL.model_dump_json()
    assert (remove_connection(home, "mail"), remove_connection(home, "mail")) == (True, False)


@pytest.mark.parametrize(
    "content",
    ["", '{"session": "s3cret"', "[]", '{"api_id": "x", "session": "s3cret"}', '{"api_id": 1, "more": "s3cret"}'],
)
def test_a_file_that_can_not_be_read_says_what_to_run_and_nothing_of_its_content(home: Home, content: str) -> None:
    home.connections.mkdir()
    connection_file(home, "telegram").write_text(content)
    with pytest.raises(ConfigMistake) as caught:
        read_connection(home, "telegram", TelegramAccount)
    assert caught.value.hint == "Connect again: annabelle connect telegram"
    told = "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in f"{caught.value.body()} {told}"


def test_an_account_kept_before_names_were_is_still_good(home: Home) -> None:
    home.connections.mkdir()
    connection_file(home, "telegram").write_text('{"api_id": 1, "api_hash": "h", "session": "s", "phone": "+49"}')
    account = read_connection(home, "telegram", TelegramAccount)
    assert account is not None
    assert (account.phone, account.name) == ("+49", "")


def test_a_place_that_can_not_be_written_is_one_sentence(home: Home) -> None:
    home.connections.write_text("a file where a folder belongs")
    with pytest.raises(StorageTrouble, match="could not be kept"):
        write_connection(home, "mail", MAIL)


def test_a_folder_that_can_not_be_read_is_not_taken_for_no_account(home: Home) -> None:
    home.connections.parent.mkdir(parents=True, exist_ok=True)
    home.connections.write_text("no folder")
    with pytest.raises(ConfigMistake, match="can not be read"):
        ConnectionFile(home, "telegram", TelegramAccount).load()
