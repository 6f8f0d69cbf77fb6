"""A Telegram in memory, and the server connected to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr

from annabelle.core.connections import TelegramAccount, write_connection
from annabelle.core.home import Home
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.telegram.api import TelegramConfig
from annabelle.servers.telegram.mtproto.client import TelethonApi
from annabelle.servers.telegram.server import build
from servers.speaking import CallTool
from support.telegram_double import TelegramDouble

SESSION = "a-session-that-nobody-may-see"


def account(session: str = SESSION) -> TelegramAccount:
    return TelegramAccount(api_id=1, api_hash=SecretStr("hash-of-the-app"), session=SecretStr(session), phone="+49")


@pytest.fixture
def connected_home(home: Home) -> Home:
    write_connection(home, "telegram", account())
    return home


@pytest.fixture
def telegram() -> TelegramDouble:
    """Ada is a contact, Bo wrote once, there are a group and a channel."""
    made = TelegramDouble()
    made.user("Ada Lovelace", id=11, contact=True, username="ada", phone="441234567")
    made.user("Bo", id=12, phone="441111111")
    made.user("Newsbot", id=13, bot=True, username="newsbot")
    made.group("Summer", id=21)
    made.channel("Daily", id=31, username="daily")
    return made


@pytest.fixture
def telegram_config(connected_home: Home, config: FilesConfig) -> TelegramConfig:
    return TelegramConfig(connected_home, config)


@pytest.fixture
async def server(telegram_config: TelegramConfig, telegram: TelegramDouble) -> AsyncGenerator[ToolServer]:
    made = build(telegram_config, lambda _account: TelethonApi(telegram.client()))
    yield made
    await made.close()


@pytest.fixture
def tool(server: ToolServer) -> CallTool:
    """Call a tool of the server without a protocol in between."""

    async def do(name: str, **arguments: object) -> BaseModel:
        return await server.tools[name].call(arguments)

    return do


@pytest.fixture
def files(config: FilesConfig) -> Path:
    config.workspace.mkdir(parents=True, exist_ok=True)
    return config.workspace
