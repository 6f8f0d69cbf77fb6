"""Telegram through Telethon. Only this package uses the library, which is imported with the first call."""
