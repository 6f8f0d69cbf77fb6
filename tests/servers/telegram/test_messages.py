"""Messages are read, found, sent and deleted where Telegram keeps them."""

from __future__ import annotations

import pytest

from annabelle.core.errors import InvalidArguments, NotFound
from annabelle.servers.kit import Call
from annabelle.servers.kit.call import enter_call
from annabelle.servers.telegram.messages import MAX_MESSAGE_UNITS, split_message
from servers.speaking import CallTool
from support.telegram_double import ME, TelegramDouble

pytestmark = pytest.mark.req("SRV-TEL")
SUMMER = -21


async def test_a_message_is_sent_to_every_way_of_naming_a_chat(telegram: TelegramDouble, tool: CallTool) -> None:
    telegram.write(11, "hello")
    names = ("11", "@ada", "https://t.me/ada", "+44 1234 567", " ada ")
    for name in names:
        sent = await tool("send_message", chat_id=name, message=f"to {name}!")
        assert telegram.messages[11][-1].id == sent.message_ids[0]
    assert telegram.texts(11)[1:] == [f"to {name}!" for name in names]
    await tool("send_message", chat_id="me", message="note")
    assert telegram.texts(ME) == ["note"]


async def test_a_reply_names_what_it_answers_and_a_group_gets_its_id(telegram: TelegramDouble, tool: CallTool) -> None:
    asked = telegram.write(SUMMER, "Who drives?", sender=12)
    sent = await tool("send_message", chat_id=str(SUMMER), message="Ich 🚗 – gern", reply_to=asked.id)
    last = telegram.messages[SUMMER][-1]
    assert (last.id, last.message, last.reply_to.reply_to_msg_id) == (sent.message_ids[0], "Ich 🚗 – gern", asked.id)
    assert sent.to_text() == f"Sent as message {last.id}."


async def test_a_long_text_goes_in_parts_that_lose_nothing(telegram: TelegramDouble, tool: CallTool) -> None:
    paragraphs = [f"{number} " + "word " * 300 for number in range(9)]
    sent = await tool("send_message", chat_id="@ada", message="\n\n".join(paragraphs), reply_to=3)
    parts = telegram.texts(11)
    assert sent.parts == len(parts) == len(sent.message_ids) > 1
    assert " ".join("\n\n".join(parts).split()) == " ".join(" ".join(paragraphs).split())
    assert [bool(message.reply_to) for message in telegram.messages[11]] == [True] + [False] * (len(parts) - 1)


@pytest.mark.parametrize("text", ["x" * 10_000, "🎉" * 5000, "a b\n" * 3000, "\n\n" * 9000 + "end", "one. two. " * 900])
def test_no_part_is_too_long_or_empty(text: str) -> None:
    parts = split_message(text)
    assert all(part.strip() for part in parts)
    assert all(len(part.encode("utf-16-le")) // 2 <= MAX_MESSAGE_UNITS for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


async def test_the_same_call_sends_once_however_often_it_is_made(telegram: TelegramDouble, tool: CallTool) -> None:
    enter_call(Call(call_id="msg_1:1"))
    await tool("send_message", chat_id="@ada", message="once")
    again = await tool("send_message", chat_id="@ada", message="once")
    assert (telegram.texts(11), again.message_ids, again.to_text()) == (["once"], [], "It had been sent already.")
    enter_call(Call(call_id="msg_1:2"))
    await tool("send_message", chat_id="@ada", message="once")
    assert telegram.texts(11) == ["once", "once"]


async def test_messages_are_read_page_by_page_newest_first(telegram: TelegramDouble, tool: CallTool) -> None:
    ids = [telegram.write(11, f"number {number}", sender=ME if number % 2 else None).id for number in range(5)]
    page = await tool("get_messages", chat_id="11", limit=3)
    assert [entry.message_id for entry in page.messages] == ids[:1:-1]
    assert [entry.own for entry in page.messages] == [False, True, False]
    assert page.messages[0].sender == "Ada Lovelace"
    rest = await tool("get_messages", chat_id="11", limit=3, offset_id=page.next_offset_id)
    assert [entry.content for entry in rest.messages] == ["number 1", "number 0"]
    assert rest.next_offset_id is None
    assert "me: number 1" in rest.to_text()


async def test_search_finds_words_in_one_chat_or_in_all(telegram: TelegramDouble, tool: CallTool) -> None:
    telegram.write(11, "the Käsekuchen recipe")
    telegram.write(SUMMER, "käsekuchen again", sender=12)
    telegram.write(12, "nothing")
    everywhere = await tool("search_messages", query="käsekuchen")
    assert [entry.chat_id for entry in everywhere.messages] == [str(SUMMER), "11"]
    assert f"[{SUMMER}]" in everywhere.to_text()
    here = await tool("search_messages", query="käsekuchen", chat_id="@ada", limit=1)
    assert [entry.content for entry in here.messages] == ["the Käsekuchen recipe"]


async def test_delete_takes_only_messages_of_the_chat_it_names(telegram: TelegramDouble, tool: CallTool) -> None:
    mine, other = telegram.write(11, "delete me"), telegram.write(12, "leave me")
    done = await tool("delete_messages", chat_id="11", message_ids=[mine.id, other.id, 999, mine.id])
    assert (done.deleted, done.not_found) == ([mine.id], [other.id, 999])
    assert (telegram.texts(11), telegram.texts(12)) == ([], ["leave me"])
    with pytest.raises(NotFound, match="None of these messages"):
        await tool("delete_messages", chat_id="11", message_ids=[other.id])
    assert telegram.texts(12) == ["leave me"]


async def test_sign_in_codes_that_telegram_sends_are_shown_to_nobody(telegram: TelegramDouble, tool: CallTool) -> None:
    telegram.user("Telegram", id=777000)
    telegram.write(777000, "Login code: 12345. Do not give it to anyone")
    telegram.write(SUMMER, "Login code: 12345", sender=777000)
    shown = [
        await tool("get_messages", chat_id="777000"),
        await tool("get_messages", chat_id=str(SUMMER)),
        await tool("search_messages", query="Login code"),
        await tool("list_chats"),
        await tool("get_new_messages"),
    ]
    for result in shown:
        assert "12345" not in result.model_dump_json() + result.to_text()
    assert "may hold a sign-in code" in shown[0].to_text()


async def test_a_chat_is_marked_read_up_to_a_message_or_to_the_end(telegram: TelegramDouble, tool: CallTool) -> None:
    first, last = telegram.write(11, "one"), telegram.write(11, "two")
    await tool("mark_read", chat_id="11", message_id=first.id)
    assert telegram.read_up_to[11] == first.id
    await tool("mark_read", chat_id="11")
    assert telegram.read_up_to[11] == last.id


@pytest.mark.req("SRV-ALL")
async def test_many_long_messages_fit_into_one_answer(telegram: TelegramDouble, tool: CallTool) -> None:
    for _ in range(100):
        telegram.write(11, "字" * 4096)
    page = await tool("get_messages", chat_id="11", limit=100)
    assert len(page.model_dump_json().encode()) < 1_000_000
    assert all(entry.cut for entry in page.messages)
    one = await tool("get_messages", chat_id="11", limit=1)
    assert (len(one.messages[0].content), one.messages[0].cut) == (4096, False)


@pytest.mark.req("SRV-ALL")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("send_message", {"chat_id": "11", "message": ""}),
        ("send_message", {"chat_id": "11", "message": " \n "}),
        ("send_message", {"chat_id": "11", "message": "x" * 40_001}),
        ("send_message", {"chat_id": "11", "message": "half \ud83d"}),
        ("send_message", {"chat_id": "", "message": "x"}),
        ("send_message", {"chat_id": "11", "message": "x", "reply_to": 2**31}),
        ("get_messages", {"chat_id": "11", "limit": 0}),
        ("get_messages", {"chat_id": "11", "limit": 101}),
        ("get_messages", {"chat_id": "11", "offset_id": -1}),
        ("search_messages", {"query": ""}),
        ("delete_messages", {"chat_id": "11", "message_ids": []}),
        ("delete_messages", {"chat_id": "11", "message_ids": [10**30]}),
        ("mark_read", {"chat_id": "11", "message_id": "x"}),
    ],
)
async def test_wrong_arguments_are_named_before_anything_is_sent(
    telegram: TelegramDouble, tool: CallTool, name: str, arguments: dict[str, object]
) -> None:
    with pytest.raises(InvalidArguments):
        await tool(name, **arguments)
    assert telegram.requests == []


@pytest.mark.req("SRV-ALL")
@pytest.mark.parametrize(
    "chat",
    ["99", "-99", "9" * 20, "-" + "9" * 16, "0", "@nobody_here", "+999999", "../etc", "a\x00b", "🦊", "x y", "@"],
)
async def test_a_chat_that_is_not_there_is_named_with_what_to_do(
    telegram: TelegramDouble, tool: CallTool, chat: str
) -> None:
    with pytest.raises(NotFound, match="was not found at Telegram") as caught:
        await tool("get_messages", chat_id=chat)
    assert "list_chats" in (caught.value.hint or "")
