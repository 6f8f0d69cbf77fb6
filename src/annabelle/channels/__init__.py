"""Ways in and out: one folder per channel, all of the shape of `channel.Channel` (CHN-01)."""

from __future__ import annotations

from typing import Final

TELEGRAM: Final = "telegram"
TELEGRAM_ACCOUNT: Final = "telegram_account"
MATRIX: Final = "matrix"
EMAIL: Final = "email"
CHAT_APPS: Final = frozenset({TELEGRAM, TELEGRAM_ACCOUNT, MATRIX, EMAIL})
"""Channels to which messages are sent. A terminal or a program reads them from the thread."""
