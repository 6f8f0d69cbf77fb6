"""The server as a process of its own on a Telegram in memory."""

from __future__ import annotations

from annabelle.servers.kit import run
from annabelle.servers.telegram.mtproto.client import TelethonApi
from annabelle.servers.telegram.server import build
from support.telegram_double import TelegramDouble

if __name__ == "__main__":
    double = TelegramDouble()
    double.user("Ada Lovelace", id=11, contact=True, username="ada")
    double.write(11, "Wie geht's? 🌞")
    run(lambda: build(api=lambda _account: TelethonApi(double.client())))
