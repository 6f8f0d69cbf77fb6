"""Runs the real server on a double of Telegram whose whole state is a log file, which the test writes to as well."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))  # the tests

from pydantic import SecretStr

from annabelle.core.connections import TelegramAccount, write_connection
from annabelle.core.home import Home
from annabelle.servers.kit import run
from annabelle.servers.telegram.mtproto.client import TelethonApi
from annabelle.servers.telegram.server import build
from channels.telegram_log import LoggedTelegram


def main() -> None:
    account = TelegramAccount(api_id=1, api_hash=SecretStr("hash-of-the-app"), session=SecretStr("session"))
    write_connection(Home.from_environment(), "telegram", account)
    telegram = LoggedTelegram(Path(os.environ["TELEGRAM_DOUBLE_LOG"]))
    run(lambda: build(api=lambda _account: TelethonApi(telegram.client())))


if __name__ == "__main__":
    main()
