"""People write to the user's own Telegram account, and Annabelle answers those who are paired."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import annabelle
from annabelle.toolbox.manifest import ServerManifest
from channels.correspondents import TelegramAccountPeople, telegram_account_people
from channels.telegram_log import append_entry
from hub.hubs import HubProcess, fresh_home, wait_for
from support.few_servers import only
from support.scripted_model import ScriptedServer, plan_text

ADA = "11"
SOURCES = Path(annabelle.__file__).parent


@pytest.fixture(scope="module")
def people() -> Iterator[TelegramAccountPeople]:
    with telegram_account_people() as made:
        yield made


@pytest.fixture(scope="module")
def hub(
    tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer, people: TelegramAccountPeople
) -> Iterator[HubProcess]:
    home = fresh_home(tmp_path_factory.mktemp("account"))
    made = HubProcess(home, model.openai_url, CHANNEL_POLL_INTERVAL_MS="200", **only(), **people.settings).start()
    made.http.post("/channels/telegram_account/accounts", json={"accountId": ADA}).raise_for_status()
    wait_for(lambda: made.http.get("/channels").json()["channels"][0]["state"] == "listening", "it listens")
    yield made
    made.end()


def wait_for_text(people: TelegramAccountPeople, part: str, account: str = ADA) -> str:
    def look() -> str | None:
        return next((text for text in people.texts(account) if part in text), None)

    return wait_for(look, f"“{part}”")


@pytest.mark.req("CHN-07", "CST-08")
@pytest.mark.incident("I-16")
def test_what_the_owner_writes_is_never_taken_for_a_message(hub: HubProcess, people: TelegramAccountPeople) -> None:
    people.own_message(plan_text([], say="To myself."))
    people.own_message(plan_text([], say="To Ada, by hand."), int(ADA))
    people.say(ADA, plan_text([], say="To Ada."))
    wait_for_text(people, "To Ada.")
    assert people.texts(ADA) == ["To Ada."]
    assert people.texts("1000") == []


@pytest.mark.req("CHN-07", "CHN-02")
def test_a_chat_that_is_new_is_found_by_itself(hub: HubProcess, people: TelegramAccountPeople) -> None:
    channel = hub.http.get("/channels").json()["channels"][0]
    people.say("77", "Is this thing on?")
    wait_for(
        lambda: hub.http.get("/channels").json()["channels"][0]["ignored"] > channel["ignored"], "the stranger is seen"
    )
    assert people.texts("77") == []


@pytest.mark.req("CST-07")
def test_a_message_that_is_too_old_is_listed_and_not_answered(hub: HubProcess, people: TelegramAccountPeople) -> None:
    append_entry(people.log, chat=int(ADA), text="Is it too late?", at=1_700_000_000)
    assert "Is it too late?" in wait_for_text(people, "I was away")
    people.say(ADA, plan_text([], say="In time."))
    wait_for_text(people, "In time.")
    assert sum("too late" in text for text in people.texts(ADA)) == 1


@pytest.mark.req("CHN-07")
def test_no_agent_and_no_person_can_read_the_account_this_way(hub: HubProcess, people: TelegramAccountPeople) -> None:
    offered = {one["name"] for one in hub.http.get("/tools/list").json()["tools"]}
    assert "telegram_double_list_chats" in offered
    assert not offered & {"telegram_double_read_updates", "telegram_double_send_reply"}
    for name in ("read_updates", "send_reply"):
        arguments = {} if name == "read_updates" else {"chat_id": ADA, "message": "Forged.", "key": "x"}
        call = {"name": f"telegram_double_{name}", "arguments": arguments}
        assert hub.http.post("/tools/call", json=call).status_code == 403
    people.say(ADA, plan_text([("telegram_double_send_reply", arguments)], say="Tried."))
    wait_for_text(people, "Tried.")
    assert "Forged." not in people.texts(ADA)


@pytest.mark.req("CST-08")
def test_the_patterns_of_programs_are_what_annabelle_says_herself() -> None:
    manifest = ServerManifest.model_validate(
        tomllib.loads((SOURCES / "servers" / "telegram" / "manifest.toml").read_text())
    )
    assert manifest.channel is not None
    assert (manifest.channel.chat_refresh_seconds, manifest.channel.max_message_age_seconds) == (300, 120)
    said = "".join(path.read_text() for path in (SOURCES / "hub").rglob("*.py"))
    assert [one for one in manifest.channel.bot_patterns if one not in said] == []
