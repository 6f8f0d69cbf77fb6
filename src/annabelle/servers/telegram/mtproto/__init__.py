"""Telegram through Telethon. Only this package of the server uses the library, and the first call imports it."""
