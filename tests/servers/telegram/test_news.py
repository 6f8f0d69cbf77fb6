"""What is new is told once, to each agent, over restarts, and never the account's own words."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from annabelle.core.errors import InvalidArguments, NotFound, StorageTrouble
from annabelle.servers.kit import Call, ToolServer
from annabelle.servers.kit.call import enter_call
from annabelle.servers.telegram import new_messages
from annabelle.servers.telegram.api import TelegramConfig
from annabelle.servers.telegram.mtproto.client import TelethonApi
from annabelle.servers.telegram.new_messages import NewMessages
from annabelle.servers.telegram.server import build
from servers.speaking import CallTool
from support.telegram_double import ME, TelegramDouble

pytestmark = pytest.mark.req("SRV-TEL")
SUMMER = -21


def told(found: NewMessages) -> dict[str, list[str]]:
    return {chat.chat_id: [message.content for message in chat.messages] for chat in found.chats}


async def test_private_chats_are_told_once_and_peeking_keeps_them(telegram: TelegramDouble, tool: CallTool) -> None:
    read = telegram.write(11, "read on the phone")
    telegram.read_up_to[11] = read.id
    telegram.write(11, "one")
    telegram.write(11, "two")
    telegram.write(13, "from a bot")
    telegram.write(SUMMER, "a group is not private", sender=12)
    for _ in range(2):
        assert told(await tool("get_new_messages", peek=True)) == {"13": ["from a bot"], "11": ["one", "two"]}
    assert told(await tool("get_new_messages")) == {"13": ["from a bot"], "11": ["one", "two"]}
    empty = await tool("get_new_messages")
    assert (told(empty), empty.to_text()) == ({}, "Nothing new.")
    later = telegram.write(11, "three")
    telegram.read_up_to[11] = later.id  # read elsewhere meanwhile: it is new here all the same
    assert told(await tool("get_new_messages")) == {"11": ["three"]}


@pytest.mark.incident("I-16")
async def test_own_messages_are_never_news(telegram: TelegramDouble, tool: CallTool) -> None:
    telegram.write(11, "question")
    await tool("send_message", chat_id="11", message="answer")
    telegram.write(ME, "a note to myself", sender=ME)
    assert told(await tool("get_new_messages")) == {"11": ["question"]}
    for chat in ("11", str(SUMMER), "me"):
        if chat == str(SUMMER):
            telegram.write(SUMMER, "old", sender=12)
        await tool("subscribe_chat", action="subscribe", chat_id=chat)
        await tool("send_message", chat_id=chat, message="mine alone")
    for _ in range(3):
        assert told(await tool("get_new_messages")) == {}


async def test_subscribed_chats_are_told_from_the_subscription_on(telegram: TelegramDouble, tool: CallTool) -> None:
    telegram.write(SUMMER, "before", sender=12)
    listed = await tool("subscribe_chat", action="subscribe", chat_id=str(SUMMER))
    assert listed.to_text() == f"Summer [{SUMMER}]"
    telegram.write(SUMMER, "after", sender=12)
    telegram.write(11, "private, and not subscribed")
    assert told(await tool("get_new_messages")) == {str(SUMMER): ["after"]}
    await tool("subscribe_chat", action="subscribe", chat_id="@ada")
    assert len((await tool("subscribe_chat", action="list")).subscriptions) == 2
    left = await tool("subscribe_chat", action="unsubscribe", chat_id="Summer")
    assert [one.chat_id for one in left.subscriptions] == ["11"]
    with pytest.raises(NotFound, match="not subscribed"):
        await tool("subscribe_chat", action="unsubscribe", chat_id="@daily")
    cleared = await tool("subscribe_chat", action="clear")
    assert (cleared.subscriptions, "all private chats" in cleared.to_text()) == ([], True)
    with pytest.raises(InvalidArguments, match="which chat"):
        await tool("subscribe_chat", action="subscribe")


async def test_more_than_fits_is_told_in_order_and_nothing_is_lost(
    telegram: TelegramDouble, tool: CallTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_messages, "MAX_NEW", 4)
    for number in range(7):
        telegram.write(11, str(number))
        telegram.write(11, "mine", sender=ME)
    telegram.write(12, "late")
    heard: list[str] = []
    for _ in range(12):
        found = await tool("get_new_messages")
        assert found.count <= 4
        heard += [text for texts in told(found).values() for text in texts]
        if not found.more:
            break
    assert sorted(heard) == sorted([*map(str, range(7)), "late"])
    assert [text for text in heard if text != "late"] == [*map(str, range(7))]


async def test_a_restart_forgets_neither_subscriptions_nor_how_far_it_was(
    telegram: TelegramDouble, tool: CallTool, telegram_config: TelegramConfig
) -> None:
    telegram.write(SUMMER, "before", sender=12)
    await tool("subscribe_chat", action="subscribe", chat_id=str(SUMMER))
    telegram.write(SUMMER, "told", sender=12)
    await tool("get_new_messages")
    telegram.write(SUMMER, "while it was down", sender=12)
    again = build(telegram_config, lambda _account: TelethonApi(telegram.client()))
    assert told(await again.tools["get_new_messages"].call({})) == {str(SUMMER): ["while it was down"]}
    await again.close()
    assert telegram_config.subscriptions_file.stat().st_mode & 0o777 == 0o600


async def test_a_torn_file_is_taken_as_empty_and_said(
    telegram: TelegramDouble, tool: CallTool, telegram_config: TelegramConfig, caplog: pytest.LogCaptureFixture
) -> None:
    telegram.write(11, "hello")
    await tool("subscribe_chat", action="subscribe", chat_id="@ada")
    file = telegram_config.subscriptions_file
    file.write_bytes(file.read_bytes()[:-20])
    with caplog.at_level(logging.WARNING):
        assert (await tool("subscribe_chat", action="list")).subscriptions == []
    assert "taken as empty" in caplog.text
    assert told(await tool("get_new_messages")) == {"11": ["hello"]}
    assert told(await tool("get_new_messages")) == {}


async def test_a_file_that_can_not_be_opened_is_not_written_over(
    tool: CallTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tool("subscribe_chat", action="subscribe", chat_id="@ada")

    def refused(_: Path) -> bytes:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refused)
        with pytest.raises(StorageTrouble, match="could not be read"):
            await tool("subscribe_chat", action="subscribe", chat_id="@daily")
    assert len((await tool("subscribe_chat", action="list")).subscriptions) == 1


async def test_each_agent_hears_everything_itself(telegram: TelegramDouble, server: ToolServer) -> None:
    telegram.write(11, "for both")

    async def ask(agent: str) -> dict[str, list[str]]:
        enter_call(Call(agent_id=agent))
        return told(await server.tools["get_new_messages"].call({}))  # pyright: ignore

    assert await asyncio.create_task(ask("annabelle")) == {"11": ["for both"]}
    assert await asyncio.create_task(ask("scout")) == {"11": ["for both"]}
    assert await asyncio.create_task(ask("annabelle")) == {}


async def test_two_at_once_are_not_told_the_same(telegram: TelegramDouble, tool: CallTool) -> None:
    telegram.write(11, "once")
    first, second = await asyncio.gather(tool("get_new_messages"), tool("get_new_messages"))
    assert first.count + second.count == 1
    await asyncio.gather(*(tool("subscribe_chat", action="subscribe", chat_id=chat) for chat in ("@ada", "@daily")))
    assert len((await tool("subscribe_chat", action="list")).subscriptions) == 2


async def test_a_failure_in_the_middle_moves_nothing(telegram: TelegramDouble, tool: CallTool) -> None:
    telegram.write(11, "kept")
    await tool("get_me")
    telegram.failures = [ConnectionError("gone")]
    with pytest.raises(Exception, match="connection to Telegram broke"):
        await tool("get_new_messages")
    assert told(await tool("get_new_messages")) == {"11": ["kept"]}
