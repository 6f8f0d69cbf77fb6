"""Telegram by a bot of one's own."""
