"""What comes in is read in order and a few at a time, also by a hub that is busy: a hub in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from annabelle.core.errors import TooManyRequests
from annabelle.core.home import Home
from annabelle.core.messages import InboundMessage
from annabelle.hub.conversations.message_gate import AdmittedMessage
from channels.bot_api_double import TOKEN, BotApiDouble
from hub.approvals.house import House, a_house
from hub.hubs import wait_for

AN_HOUR_MS = 3_600_000


@dataclass
class ListeningHub:
    house: House
    bot: BotApiDouble

    @property
    def read(self) -> list[str]:
        """What reached the model."""
        return [brief.text for brief in self.house.thinker.briefs]

    async def wait_for(self, look: Callable[[], object], what: str) -> None:
        await asyncio.to_thread(wait_for, look, f"{what}; the bot has sent {self.bot.texts()}")


@asynccontextmanager
async def listening_hub(
    home: Home, bot: tuple[BotApiDouble, str], *before: str, **settings: object
) -> AsyncIterator[ListeningHub]:
    """A hub that begins to listen when these messages wait for it, so that it gets them at once."""
    for text in before:
        bot[0].say(text)
    async with a_house(home, telegram_bot_token=TOKEN, telegram_api_url=bot[1], **settings) as house:
        channels = house.hub.conversations.channels
        await channels.accounts.link("telegram", "7", "owner", chat_id="7")
        yield ListeningHub(house, bot[0])
        await channels.stop()


@pytest.mark.req("CHN-04")
async def test_a_message_that_has_to_wait_is_not_overtaken(
    home: Home, bot: tuple[BotApiDouble, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening_hub(home, bot, "one", "two", channel_poll_interval_ms=0) as hub:
        gate = hub.house.hub.conversations.gate
        receive, refusals = gate.receive, iter([True])

        async def be_busy_once(message: InboundMessage) -> AdmittedMessage:
            if next(refusals, False):
                raise TooManyRequests("The queue is full.")
            return await receive(message)

        monkeypatch.setattr(gate, "receive", be_busy_once)
        await hub.house.hub.conversations.channels.start()
        await hub.wait_for(lambda: len(hub.read) == 2, "both messages")
        assert hub.read == ["one", "two"]


@pytest.mark.req("CHN-04", "CMD-02")
async def test_what_was_held_back_in_a_stopped_channel_is_not_overtaken_once_it_goes_on(
    home: Home, bot: tuple[BotApiDouble, str]
) -> None:
    async with listening_hub(home, bot, "one", "/resume telegram", "two", channel_poll_interval_ms=0) as hub:
        hub.house.hub.agents.halts.stop("telegram", "owner")
        await hub.house.hub.conversations.channels.start()
        await hub.wait_for(lambda: len(hub.read) == 2, "both messages")
        assert hub.read == ["one", "two"]


@pytest.mark.req("CST-07", "CMD-01")
async def test_three_messages_of_a_chat_are_read_in_a_cycle_and_commands_at_once(
    home: Home, bot: tuple[BotApiDouble, str]
) -> None:
    texts = ["number one", "/etc/hosts is no command", "number three", "/neither is this", "number five"]
    async with listening_hub(home, bot, *texts, "/status", channel_poll_interval_ms=AN_HOUR_MS) as hub:
        await hub.house.hub.conversations.channels.start()
        await hub.wait_for(lambda: any("Annabelle" in text for text in bot[0].texts()), "the answer to the command")
        bot[0].say("/help")
        await hub.wait_for(lambda: any("/kill" in text for text in bot[0].texts()), "the answer to the next one")
        assert hub.read == texts[:3]


@pytest.mark.req("CHN-02")
async def test_what_an_account_wrote_before_it_was_taken_back_is_not_read(
    home: Home, bot: tuple[BotApiDouble, str]
) -> None:
    async with listening_hub(home, bot, "/kill telegram", "held back", channel_poll_interval_ms=0) as hub:
        channels = hub.house.hub.conversations.channels
        await channels.start()
        await hub.wait_for(lambda: any("/resume telegram" in text for text in bot[0].texts()), "a stopped channel")
        await channels.accounts.unlink("telegram", "7")
        await channels.accounts.link("telegram", "8", "owner", chat_id="8")
        bot[0].say("/resume telegram", 8)
        bot[0].say("mine", 8)
        await hub.wait_for(lambda: hub.read, "the next message")
        assert hub.read == ["mine"]


@pytest.mark.req("HUB-08")
async def test_without_a_thinker_a_channel_is_only_written_to_by_tools(
    home: Home, bot: tuple[BotApiDouble, str]
) -> None:
    async with listening_hub(home, bot, channel_poll_interval_ms=0) as hub:
        await hub.house.hub.conversations.channels.start()
        bot[0].say("hello")
        await hub.wait_for(lambda: "You said: hello" in bot[0].texts(), "an answer")
    bot[0].calls.clear()
    async with listening_hub(home, bot, "anybody there?", thinker_enabled=False) as hub:
        await hub.house.hub.conversations.channels.start()
        words = {"message": "By a tool.", "channel": "telegram", "chat_id": "7"}
        called = await hub.house.owner.post("/tools/call", json={"name": "send_message", "arguments": words})
        assert called.json()["is_error"] is False, called.text
        await hub.wait_for(lambda: "By a tool." in bot[0].texts(), "what the tool sent")
        assert {method for method, _ in bot[0].calls} == {"sendMessage"}
        assert [one.state for one in hub.house.hub.conversations.channels.statuses()] == ["stopped"]
