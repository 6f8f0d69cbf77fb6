"""Telegram calls the hub: with the right secret only, answered once it is stored."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx2 as httpx
import pytest

from annabelle.core.home import Home
from channels.bot_api_double import TOKEN, BotApiDouble
from channels.conftest import OWNER_ACCOUNT, Chatting
from hub.hubs import HubProcess, wait_for
from support.few_servers import only
from support.network import free_port
from support.scripted_model import ScriptedServer, plan_text


@pytest.fixture
def called(home: Home, model: ScriptedServer, bot: tuple[BotApiDouble, str]) -> Iterator[Chatting]:
    port = free_port()
    settings = {
        "ANNABELLE_PORT": str(port),
        "TELEGRAM_BOT_TOKEN": TOKEN,
        "TELEGRAM_API_URL": bot[1],
        "TELEGRAM_WEBHOOK_URL": f"http://127.0.0.1:{port}",
    }
    hub = HubProcess(home, model.openai_url, **only(), **settings).start()
    wait_for(lambda: bot[0].webhook.get("url"), "the webhook")
    yield Chatting(hub, bot[0])
    hub.end()


@pytest.mark.req("CHN-03", "CHN-01")
def test_an_update_that_telegram_brings_is_answered(called: Chatting) -> None:
    called.pair()
    called.ask(plan_text([], say="By webhook."), "By webhook.")
    assert called.bot.count("getUpdates") == 0


@pytest.mark.req("CHN-03")
def test_without_the_secret_nothing_comes_in(called: Chatting) -> None:
    called.pair()
    address = called.bot.webhook["url"]
    forged = {
        "message_id": 99,
        "from": {"id": OWNER_ACCOUNT, "is_bot": False},
        "chat": {"id": OWNER_ACCOUNT, "type": "private"},
        "date": int(time.time()),
        "text": plan_text([], say="Forged."),
    }
    update = {"update_id": 99, "message": forged}
    assert httpx.post(address, json=update).status_code == 401
    wrong = {"X-Telegram-Bot-Api-Secret-Token": "wrong"}
    assert httpx.post(address, json=update, headers=wrong).status_code == 401
    called.ask(plan_text([], say="Genuine."), "Genuine.")
    assert "Forged." not in called.bot.texts()


@pytest.mark.req("CHN-02", "CHN-03")
def test_a_stranger_is_answered_200_and_nothing_more(called: Chatting) -> None:
    called.bot.say("hello?", 66)
    garbage = called.bot.call_webhook({"update_id": 7})
    assert garbage == 200
    assert called.bot.texts(66) == []


@pytest.mark.req("CHN-03")
def test_what_is_nested_without_end_is_refused(called: Chatting) -> None:
    assert httpx.post(called.bot.webhook["url"], content=b"[" * 200_000).status_code == 422
