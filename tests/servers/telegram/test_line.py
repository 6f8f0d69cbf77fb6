"""The line to Telegram under trouble: waits, ended sessions, broken connections, cancelled calls."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from telethon import TelegramClient, errors
from telethon.crypto import AuthKey
from telethon.errors import rpcerrorlist
from telethon.sessions import StringSession
from telethon.tl import functions

from annabelle.core.connections import TelegramAccount, connection_file, remove_connection, write_connection
from annabelle.core.errors import (
    AnnabelleError,
    ConfigMistake,
    InvalidArguments,
    NotAllowed,
    NotFound,
    OutcomeUnknown,
    TooManyRequests,
    Unavailable,
)
from annabelle.core.home import Home
from annabelle.servers.kit import ToolServer
from annabelle.servers.telegram import connection
from annabelle.servers.telegram.api import TelegramConfig
from annabelle.servers.telegram.mtproto import client
from annabelle.servers.telegram.mtproto.client import TelethonApi, make_api
from annabelle.servers.telegram.server import build
from servers.speaking import CallTool
from servers.telegram.conftest import SESSION, account
from support.telegram_double import TelegramDouble
from support.timing import seconds

pytestmark = pytest.mark.req("SRV-TEL", "SRV-ALL")


async def test_nothing_is_connected_before_the_first_call_and_calls_at_once_share_one_line(
    telegram: TelegramDouble, tool: CallTool
) -> None:
    assert telegram.clients == []
    await asyncio.gather(*(tool("get_me") for _ in range(5)), *(tool("list_chats") for _ in range(5)))
    assert len(telegram.clients) == 1
    assert telegram.requests.count("connect") == 1


async def test_a_wait_is_told_in_seconds_and_nothing_was_sent(telegram: TelegramDouble, tool: CallTool) -> None:
    await tool("get_me")
    telegram.failures = [errors.FloodWaitError(request=None, capture=37)]
    with pytest.raises(TooManyRequests, match="wait 37 seconds") as caught:
        await tool("send_message", chat_id="@ada", message="x")
    assert caught.value.retry_after == 37
    assert telegram.texts(11) == []


@pytest.mark.parametrize("kind", ["SessionRevokedError", "AuthKeyUnregisteredError", "UserDeactivatedError"])
async def test_an_ended_session_says_what_to_run_until_there_is_a_new_one(
    telegram: TelegramDouble, server: ToolServer, tool: CallTool, connected_home: Home, kind: str
) -> None:
    assert (await server.tools["readiness"].call({})).missing is None  # pyright: ignore
    await tool("get_me")
    telegram.failures = [getattr(rpcerrorlist, kind)(request=None)]
    with pytest.raises(Unavailable, match="has ended this session") as caught:
        await tool("list_chats")
    assert caught.value.hint == "Run: annabelle connect telegram"
    assert "annabelle connect telegram" in (await server.tools["readiness"].call({})).missing  # pyright: ignore
    before = len(telegram.requests)
    with pytest.raises(Unavailable, match="has ended this session"):
        await tool("list_chats")
    assert len(telegram.requests) == before, "Telegram is not asked again with a session it has ended"
    write_connection(connected_home, "telegram", account("another-session"))
    assert (await tool("get_me")).name == "Me"
    assert (await server.tools["readiness"].call({})).missing is None  # pyright: ignore


async def test_a_session_that_is_ended_at_the_start_is_said_at_the_first_call(
    telegram: TelegramDouble, tool: CallTool
) -> None:
    telegram.revoked = True
    with pytest.raises(Unavailable, match="has ended this session"):
        await tool("get_me")


async def test_a_trouble_of_the_moment_at_the_start_is_not_taken_for_an_ended_session(
    telegram: TelegramDouble, tool: CallTool
) -> None:
    telegram.failures = [errors.FloodWaitError(request=None, capture=60), errors.RpcCallFailError(request=None)]
    with pytest.raises(TooManyRequests, match="wait 60 seconds"):
        await tool("get_me")
    with pytest.raises(Unavailable, match="connection to Telegram broke"):
        await tool("get_me")
    assert (await tool("get_me")).name == "Me"


async def test_without_an_account_every_tool_says_what_to_run(home: Home, telegram_config: TelegramConfig) -> None:
    remove_connection(home, "telegram")
    server = build(telegram_config)
    assert "annabelle connect telegram" in (await server.tools["readiness"].call({})).missing  # pyright: ignore
    calls: dict[str, dict[str, object]] = {
        "list_chats": {}, "list_contacts": {}, "get_me": {}, "get_new_messages": {}, "get_chat": {"chat_id": "me"},
        "send_message": {"chat_id": "me", "message": "x"}, "get_messages": {"chat_id": "me"},
        "search_messages": {"query": "x"}, "delete_messages": {"chat_id": "me", "message_ids": [1]},
        "mark_read": {"chat_id": "me"}, "create_group": {"title": "x", "user_ids": ["1"]},
        "add_contact": {"phone": "+49123456", "first_name": "x"}, "search_users": {"query": "x"},
        "download_media": {"chat_id": "me", "message_id": 1, "output_path": "a"},
        "subscribe_chat": {"action": "subscribe", "chat_id": "me"}, "read_updates": {},
        "send_reply": {"chat_id": "me", "message": "x", "key": "x"},
    }  # fmt: skip
    for name, arguments in calls.items():
        with pytest.raises(Unavailable, match="not connected") as caught:
            await server.tools[name].call(arguments)
        assert caught.value.hint == "Run: annabelle connect telegram"
    assert set(server.tools) - set(calls) == {"send_media", "readiness"}


async def test_a_damaged_account_is_a_sentence_without_its_content(home: Home, telegram_config: TelegramConfig) -> None:
    server = build(telegram_config)
    connection_file(home, "telegram").write_text('{"api_id": "very secret')
    with pytest.raises(ConfigMistake) as caught:
        await server.tools["get_me"].call({})
    assert "very secret" not in f"{caught.value.message}{caught.value.hint}"
    assert "annabelle connect telegram" in (await server.tools["readiness"].call({})).missing  # pyright: ignore
    write_connection(home, "telegram", account("no session at all"))
    with pytest.raises(ConfigMistake, match="can not be read"):
        await server.tools["get_me"].call({})


async def test_a_broken_connection_is_made_again_and_a_change_in_between_is_unknown(
    telegram: TelegramDouble, tool: CallTool
) -> None:
    await tool("get_chat", chat_id="@ada")
    telegram.failures = [ConnectionResetError("gone")]
    with pytest.raises(Unavailable, match="connection to Telegram broke"):
        await tool("get_messages", chat_id="@ada")
    telegram.failures = []
    await tool("get_chat", chat_id="@ada")
    telegram.failures = [ConnectionResetError("gone")]
    with pytest.raises(OutcomeUnknown, match="whether it took effect is not known") as caught:
        await tool("send_message", chat_id="@ada", message="x")
    assert "get_messages" in (caught.value.hint or "")
    assert len(telegram.clients) == 2
    assert (await tool("send_message", chat_id="@ada", message="y")).message_ids
    assert telegram.texts(11) == ["y"]
    assert len(telegram.clients) == 3


async def test_a_failure_between_the_parts_of_a_text_says_what_went_out(
    telegram: TelegramDouble, tool: CallTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tool("get_chat", chat_id="@ada")
    step, count = telegram.step, 0

    async def third_breaks(what: str) -> None:
        nonlocal count
        count += what == functions.messages.SendMessageRequest.__name__
        if count == 3:
            raise errors.FloodWaitError(request=None, capture=9)
        await step(what)

    monkeypatch.setattr(telegram, "step", third_breaks)
    with pytest.raises(TooManyRequests) as caught:
        await tool("send_message", chat_id="@ada", message="word " * 2400)
    assert caught.value.message.startswith("Only 2 of 3 parts were sent (messages 1, 2). Telegram asks to wait 9")
    assert len(telegram.texts(11)) == 2


async def test_a_cancelled_call_ends_at_once_and_the_line_stays_good(telegram: TelegramDouble, tool: CallTool) -> None:
    await tool("get_me")
    telegram.gate = asyncio.Event()
    call = asyncio.create_task(tool("send_message", chat_id="@ada", message="never"))
    async with asyncio.timeout(seconds(10)):
        await telegram.waiting.wait()
    call.cancel()
    async with asyncio.timeout(seconds(10)):
        with pytest.raises(asyncio.CancelledError):
            await call
    telegram.gate = None
    assert (await tool("get_me")).name == "Me"
    assert telegram.texts(11) == []
    assert len(telegram.clients) == 1


async def test_a_telegram_that_does_not_answer_is_given_up(
    telegram: TelegramDouble, tool: CallTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.01)
    telegram.gate = asyncio.Event()
    with pytest.raises(Unavailable, match="did not answer in time"):
        await tool("get_me")
    telegram.gate = None
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 10)
    assert (await tool("get_me")).name == "Me"


@pytest.mark.parametrize(
    ("name", "arguments"), [("get_messages", {}), ("download_media", {"message_id": 1, "output_path": "a"})]
)
async def test_a_request_that_is_not_answered_is_given_up_at_every_step(
    telegram: TelegramDouble, tool: CallTool, monkeypatch: pytest.MonkeyPatch, name: str, arguments: dict[str, object]
) -> None:
    await tool("get_me")
    monkeypatch.setattr(client, "REQUEST_SECONDS", 0.01)
    for chat in ("@ada", "11"):  # the second asks for the chats first
        telegram.gate = asyncio.Event()
        with pytest.raises(Unavailable, match="connection to Telegram broke"):
            await tool(name, chat_id=chat, **arguments)
    with pytest.raises(OutcomeUnknown):
        await tool("send_message", chat_id="@ada", message="x")
    with pytest.raises(OutcomeUnknown):
        await tool("create_group", title="x", user_ids=["@ada"])
    telegram.gate = None
    assert telegram.texts(11) == []


async def test_a_session_that_ends_late_does_not_end_the_one_that_came_after_it(
    telegram: TelegramDouble, server: ToolServer, tool: CallTool, connected_home: Home
) -> None:
    await tool("get_me")
    telegram.gate = asyncio.Event()
    late = asyncio.create_task(tool("list_chats"))
    async with asyncio.timeout(seconds(10)):
        await telegram.waiting.wait()
    write_connection(connected_home, "telegram", account("another-session"))
    gate, telegram.gate = telegram.gate, None
    assert (await tool("get_me")).name == "Me"
    telegram.failures = [errors.SessionRevokedError(request=None)]
    gate.set()
    with pytest.raises(Unavailable, match="has ended this session"):
        await late
    assert (await tool("get_me")).name == "Me"
    assert (await server.tools["readiness"].call({})).missing is None  # pyright: ignore


async def test_an_unused_line_is_closed_and_opened_again(
    telegram: TelegramDouble, connected_home: Home, telegram_config: TelegramConfig
) -> None:
    quick = TelegramConfig(connected_home, telegram_config.files, idle_seconds=0.01)
    server = build(quick, lambda _account: TelethonApi(telegram.client()))
    await server.tools["get_me"].call({})
    async with asyncio.timeout(seconds(10)):
        await telegram.clients[0].left.wait()
    await server.tools["get_me"].call({})
    assert len(telegram.clients) == 2
    await server.close()
    assert not telegram.clients[1].is_connected()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.PeerIdInvalidError(request=None), NotFound),
        (errors.ChatWriteForbiddenError(request=None), NotAllowed),
        (errors.PeerFloodError(request=None), NotAllowed),
        (errors.UserIsBlockedError(request=None), NotAllowed),
        (errors.SlowModeWaitError(request=None, capture=5), TooManyRequests),
        (errors.MessageEmptyError(request=None), InvalidArguments),
        (errors.InterdcCallErrorError(request=None, capture=2), OutcomeUnknown),
        (errors.TimedOutError(None, "Timeout"), OutcomeUnknown),
        (TimeoutError(), OutcomeUnknown),
    ],
)
async def test_every_refusal_is_one_sentence_of_ours(
    telegram: TelegramDouble, tool: CallTool, error: Exception, kind: type[AnnabelleError]
) -> None:
    await tool("get_chat", chat_id="@ada")
    telegram.failures = [error]
    with pytest.raises(AnnabelleError) as caught:
        await tool("send_message", chat_id="@ada", message="x")
    assert type(caught.value) is kind
    assert "caused by" not in caught.value.message
    assert "Request" not in caught.value.message


async def test_the_session_is_in_no_log_and_no_error(
    telegram: TelegramDouble, tool: CallTool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        await tool("get_me")
        telegram.failures = [errors.SessionRevokedError(request=None)]
        with pytest.raises(Unavailable) as caught:
            await tool("list_chats")
    assert SESSION not in caplog.text + repr(caught.value) + repr(account())
    assert "hash-of-the-app" not in caplog.text + repr(account())


@pytest.fixture
def real_account() -> TelegramAccount:
    session = StringSession()
    session.set_dc(2, "127.0.0.1", 443)
    session.auth_key = AuthKey(bytes(range(256)))
    return account(session.save())


def test_the_real_client_is_made_from_an_account_without_touching_the_network(real_account: TelegramAccount) -> None:
    assert not make_api(real_account).connected


def test_the_real_client_waits_out_only_what_fits_into_a_call(
    real_account: TelegramAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A longer wait than the time of a request would end as an outcome nobody knows, instead of as seconds to wait."""
    made: list[TelegramClient] = []

    def kept(*given: Any, **options: Any) -> TelegramClient:
        made.append(TelegramClient(*given, **options))
        return made[0]

    monkeypatch.setattr(client, "TelegramClient", kept)
    make_api(real_account)
    assert 0 < made[0].flood_sleep_threshold < client.REQUEST_SECONDS  # pyright: ignore
