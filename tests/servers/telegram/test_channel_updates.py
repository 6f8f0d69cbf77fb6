"""The account as a channel: what the hub reads, again until it has stored it, and replies that arrive once."""

from __future__ import annotations

import pytest

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit import ToolServer
from annabelle.servers.telegram.channel_updates import FeedPage
from servers.speaking import CallTool
from support.telegram_double import ME, TelegramDouble

ADA, BO, BOT = 11, 12, 13


async def read(tool: CallTool, cursor: str | None, chat_ids: list[str] | None = None) -> FeedPage:
    page = await tool("read_updates", cursor=cursor, chat_ids=chat_ids)
    assert isinstance(page, FeedPage)
    return page


def contents(page: FeedPage) -> list[str]:
    return [one.content for one in page.messages]


@pytest.mark.req("CHN-07")
async def test_what_was_not_acknowledged_is_read_again(tool: CallTool, telegram: TelegramDouble) -> None:
    telegram.write(ADA, "Before.")
    start = (await read(tool, None)).cursor
    telegram.write(ADA, "First.")
    telegram.write(BO, "Second.")
    page = await read(tool, start)
    assert sorted(contents(page)) == ["First.", "Second."]
    assert contents(await read(tool, start)) == contents(page)
    assert contents(await read(tool, page.cursor)) == []
    telegram.write(BO, "Third.")
    assert contents(await read(tool, page.cursor)) == ["Third."]


@pytest.mark.req("CHN-07", "CST-08")
@pytest.mark.incident("I-16")
async def test_own_messages_saved_messages_and_groups_are_not_read(tool: CallTool, telegram: TelegramDouble) -> None:
    start = (await read(tool, None)).cursor
    telegram.write(ADA, "My own words.", sender=ME)
    telegram.write(ME, "A note to myself.", sender=ME)
    telegram.write(-21, "In the group.", sender=ADA)
    telegram.write(BOT, "From a bot.")
    telegram.write(ADA, "From Ada.")
    page = await read(tool, start)
    assert {one.content: one.bot for one in page.messages} == {"From a bot.": True, "From Ada.": False}
    assert contents(await read(tool, start, [str(ME), str(ADA)])) == ["From Ada."]


@pytest.mark.req("CHN-07")
async def test_chats_read_in_between_are_not_read_again_when_all_are(tool: CallTool, telegram: TelegramDouble) -> None:
    start = (await read(tool, None)).cursor
    telegram.write(BO, "Bo, earlier.")
    telegram.write(ADA, "Ada.")
    only_ada = await read(tool, start, [str(ADA), "999"])
    assert contents(only_ada) == ["Ada."]
    everybody = await read(tool, only_ada.cursor)
    assert contents(everybody) == ["Bo, earlier."]
    assert contents(await read(tool, everybody.cursor)) == []


async def test_a_flood_is_read_page_by_page(tool: CallTool, telegram: TelegramDouble) -> None:
    cursor = (await read(tool, None)).cursor
    for number in range(130):
        telegram.write(ADA if number % 2 else BO, f"{number}")
    found: list[str] = []
    for _ in range(5):
        page = await read(tool, cursor)
        found, cursor = [*found, *contents(page)], page.cursor
        if not page.more:
            break
    assert sorted(found, key=int) == [str(number) for number in range(130)]


@pytest.mark.req("TRU-02")
@pytest.mark.incident("I-12")
async def test_a_reply_with_the_same_key_is_sent_once_and_without_a_preview(
    tool: CallTool, telegram: TelegramDouble
) -> None:
    telegram.write(ADA, "Hello?")
    await read(tool, None)
    for _ in range(2):
        await tool("send_reply", chat_id=str(ADA), message="Hello, Ada.", key="msg_1.0")
    await tool("send_reply", chat_id=str(ADA), message="Again.", key="msg_1.1")
    assert telegram.texts(ADA) == ["Hello?", "Hello, Ada.", "Again."]
    assert telegram.previewed == []


async def test_a_foreign_cursor_is_refused(tool: CallTool) -> None:
    with pytest.raises(InvalidArguments):
        await read(tool, "not a cursor")


@pytest.mark.req("CHN-07")
def test_only_the_hub_may_use_the_feed(server: ToolServer) -> None:
    assert {name: server.tools[name].audience for name in ("read_updates", "send_reply")} == {
        "read_updates": "hub",
        "send_reply": "hub",
    }
