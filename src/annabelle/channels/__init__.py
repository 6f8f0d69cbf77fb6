"""Ways in and out: one folder per channel, all of the shape of `channel.Channel` (CHN-01)."""

from __future__ import annotations

from typing import Final

CHAT_APPS: Final = frozenset({"telegram", "telegram_account", "matrix", "email"})
"""Channels to which messages are sent. A terminal or a program reads them from the thread."""
