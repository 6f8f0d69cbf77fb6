"""Telethon's client as `annabelle connect` uses it: for a few requests, and giving up soon."""

from __future__ import annotations

from pydantic import SecretStr
from telethon import TelegramClient
from telethon.sessions import StringSession

from annabelle import __version__


def short_lived(api_id: int, api_hash: SecretStr, session: str = "") -> TelegramClient:
    """Without a session it is nobody's yet."""
    return TelegramClient(
        StringSession(session),
        api_id,
        api_hash.get_secret_value(),
        device_model="Annabelle",
        app_version=__version__,
        flood_sleep_threshold=0,
        connection_retries=2,
        receive_updates=False,
    )
