"""Chats, groups, contacts and strangers as Telegram has them."""

from __future__ import annotations

import pytest

from annabelle.core.errors import InvalidArguments, NotFound
from servers.speaking import CallTool
from support.telegram_double import ME, TelegramDouble

pytestmark = pytest.mark.req("SRV-TEL")


async def test_chats_are_listed_by_their_newest_message(telegram: TelegramDouble, tool: CallTool) -> None:
    telegram.write(-21, "first", sender=12)
    telegram.write(11, "second\nline")
    telegram.write(11, "mine", sender=ME)
    telegram.write(-1000000000031, "news", sender=13)
    telegram.read_up_to[11] = 1
    listed = await tool("list_chats")
    assert [(chat.chat_id, chat.kind, chat.unread) for chat in listed.chats] == [
        ("-1000000000031", "channel", 1),
        ("11", "private", 1),
        ("-21", "group", 1),
    ]
    assert listed.chats[1].last_message == "mine"
    assert "Ada Lovelace [11] private" in listed.to_text()
    assert len((await tool("list_chats", limit=1)).chats) == 1


async def test_a_chat_tells_what_it_is(telegram: TelegramDouble, tool: CallTool) -> None:
    telegram.write(-21, "hi", sender=12)
    group = await tool("get_chat", chat_id="-21")
    assert (group.title, group.kind, group.members, group.about) == ("Summer", "group", 3, "Plans for the summer")
    person = await tool("get_chat", chat_id="@ada")
    assert (person.title, person.kind, person.about) == ("Ada Lovelace", "private", "Bakes bread")
    assert (await tool("get_chat", chat_id="@daily")).kind == "channel"
    assert (await tool("get_chat", chat_id="@newsbot")).kind == "bot"
    assert (await tool("get_chat", chat_id="me")).chat_id == str(ME)


async def test_a_group_is_made_and_says_who_could_not_be_added(telegram: TelegramDouble, tool: CallTool) -> None:
    telegram.not_addable.add(12)
    telegram.write(12, "hi")
    made = await tool("create_group", title="Bouldering 🧗", user_ids=["@ada", "12", "@ada"])
    assert (made.chat.title, made.chat.members, made.left_out) == ("Bouldering 🧗", 3, ["12"])
    assert telegram.entity(int(made.chat.chat_id)).title == "Bouldering 🧗"
    before = len(telegram.chats)
    with pytest.raises(NotFound):
        await tool("create_group", title="Nobody", user_ids=["@ada", "@nobody_here"])
    assert len(telegram.chats) == before, "nothing is made for half of the people"


async def test_contacts_are_listed_and_added(telegram: TelegramDouble, tool: CallTool) -> None:
    assert [one.name for one in (await tool("list_contacts")).people] == ["Ada Lovelace"]
    added = await tool("add_contact", phone="+44 (1111) 11-1", first_name="Bo", last_name="Svensson")
    assert (added.chat_id, added.name, added.phone, added.contact) == ("12", "Bo Svensson", "+441111111", True)
    assert telegram.contacts == {11, 12}
    listed = await tool("list_contacts")
    assert [one.name for one in listed.people] == ["Ada Lovelace", "Bo Svensson"]
    assert "@ada +441234567 [11]" in listed.to_text()
    with pytest.raises(NotFound, match="Nobody at Telegram has the number"):
        await tool("add_contact", phone="+4900000", first_name="Nobody")
    with pytest.raises(InvalidArguments, match="not a phone number"):
        await tool("add_contact", phone="call me", first_name="Nobody")


async def test_people_are_searched_and_can_be_written_to_by_id(telegram: TelegramDouble, tool: CallTool) -> None:
    telegram.user("Ada Byron", id=2**40 + 7, username="byron")
    found = await tool("search_users", query="ada", limit=5)
    assert [one.chat_id for one in found.people] == ["11", str(2**40 + 7)]
    await tool("send_message", chat_id=str(2**40 + 7), message="Hello, Ms Byron")
    assert telegram.texts(2**40 + 7) == ["Hello, Ms Byron"]
    assert (await tool("search_users", query="zzz")).to_text() == "Nobody was found."


async def test_get_me_tells_whose_account_it_is(tool: CallTool) -> None:
    me = await tool("get_me")
    assert (me.chat_id, me.name, me.username, me.phone) == (str(ME), "Me", "myself", "+4915100000")
