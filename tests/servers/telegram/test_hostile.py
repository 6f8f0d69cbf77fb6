"""Hostile arguments at a connected account: what is wrong is said, what passes reaches Telegram whole."""

from __future__ import annotations

import pytest

from annabelle.core.errors import AnnabelleError
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.server import MAX_RESULT_BYTES
from annabelle.servers.kit.tools import success
from servers.hostile_arguments import cases, plausible
from support.telegram_double import TelegramDouble

_REAL = {"chat_id": "@ada", "user_ids": ["@ada"], "phone": "+441111111"}
_OUR_FAULT = {"internal_error", "bad_config", "unavailable"}


@pytest.mark.req("SRV-TEL", "SRV-ALL")
async def test_no_argument_gets_more_than_a_sentence_out_of_a_tool(
    server: ToolServer, telegram: TelegramDouble
) -> None:
    telegram.write_file(12, b"x", "a.txt")
    telegram.write(11, "left alone")
    usual = plausible("chat_id", {"type": "string"})
    wrong: list[str] = []
    for tool in server.tools.values():
        for arguments in cases(tool.input_schema(), "/etc/passwd"):
            # Chats and people that are there, so that the other arguments get as far as Telegram.
            named = {
                key: _REAL.get(key, value) if value in (usual, [usual]) else value for key, value in arguments.items()
            }
            try:
                success(await tool.call(named), MAX_RESULT_BYTES)
            except AnnabelleError as error:
                if error.code in _OUR_FAULT or not 0 < len(error.message) < 500:
                    wrong.append(f"{tool.name}({str(named)[:100]}): {error.message[:100]}")
    assert wrong == []
    assert "left alone" in telegram.texts(11)
    assert len(telegram.clients) == 1
    assert {"SendMessageRequest", "CreateChatRequest", "ImportContactsRequest"} <= set(telegram.requests)
