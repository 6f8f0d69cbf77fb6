"""A hub with a Telegram bot, over real HTTP to the double of the Bot API."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from annabelle.core.home import Home
from channels.bot_api_double import TOKEN, BotApiDouble, SentMessage, bot_api_double
from hub.hubs import HubProcess, wait_for
from support.few_servers import only
from support.scripted_model import ScriptedServer

OWNER_ACCOUNT = 7


@dataclass
class Chatting:
    """The owner on a phone, and the hub."""

    hub: HubProcess
    bot: BotApiDouble

    def pair(self, account: int = OWNER_ACCOUNT, user_id: str = "owner") -> None:
        code = self.hub.http.post("/channels/telegram/pair", json={"userId": user_id}).json()["code"]
        self.bot.say(f"/start {code}", account)
        self.wait_for_text("You are connected", account)

    def wait_for_text(self, part: str, account: int = OWNER_ACCOUNT, count: int = 1) -> SentMessage:
        """The last message with these words, once there are so many."""

        def look() -> SentMessage | None:
            found = [one for one in self.bot.sent if part in one.text and one.chat_id == str(account)]
            return found[-1] if len(found) >= count else None

        return wait_for(look, f"{count} messages with “{part}”; there are {self.bot.texts(account)}")

    def ask(self, text: str, answer: str, account: int = OWNER_ACCOUNT) -> SentMessage:
        self.bot.say(text, account)
        return self.wait_for_text(answer, account)

    def answer(self, verdict: str) -> None:
        """The question that is asked, elsewhere than in Telegram."""
        (asked,) = self.asked()
        self.hub.http.post(f"/approvals/{asked['id']}", json={"verdict": verdict}).raise_for_status()

    def asked(self) -> list[dict[str, str]]:
        return self.hub.http.get("/approvals", params={"state": "pending"}).json()["approvals"]

    def ignored(self) -> int:
        return self.hub.http.get("/channels").json()["channels"][0]["ignored"]

    def forget(self) -> None:
        """Whoever was paired is a stranger again, nothing is asked, and the bot has sent and refused nothing."""
        if self.asked():
            self.hub.http.post("/stop").raise_for_status()
        self.hub.http.post("/resume").raise_for_status()
        for account in self.hub.http.get("/channels").json()["accounts"]:
            self.hub.http.post(f"/channels/telegram/accounts/{account['accountId']}/delete", json={}).raise_for_status()
        shutil.rmtree(self.hub.home.workspace / "received", ignore_errors=True)
        self.bot.reset()


@pytest.fixture(scope="session")
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def failpoints(tmp_path: Path) -> Path:
    folder = tmp_path / "failpoints"
    folder.mkdir()
    return folder


@pytest.fixture
def bot() -> Iterator[tuple[BotApiDouble, str]]:
    with bot_api_double() as made:
        yield made


@pytest.fixture
def chatting(home: Home, model: ScriptedServer, bot: tuple[BotApiDouble, str], failpoints: Path) -> Iterator[Chatting]:
    yield from _chat(home, model, bot, ANNABELLE_FAILPOINTS=str(failpoints))


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer) -> Iterator[Chatting]:
    with bot_api_double() as bot:
        yield from _chat(Home(tmp_path_factory.mktemp("telegram") / "home"), model, bot, **only())


@pytest.fixture
def shared(lasting: Chatting) -> Iterator[Chatting]:
    """A hub that a module's tests share, where each pairs anew: for what does not depend on what was said before."""
    yield lasting
    lasting.forget()


def _chat(home: Home, model: ScriptedServer, bot: tuple[BotApiDouble, str], **more: str) -> Iterator[Chatting]:
    settings = {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_API_URL": bot[1], "CHANNEL_POLL_INTERVAL_MS": "200", **more}
    hub = HubProcess(home, model.openai_url, **settings).start()
    yield Chatting(hub, bot[0])
    hub.end()
