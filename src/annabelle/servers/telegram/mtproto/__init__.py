"""Telegram through Telethon. Nothing outside this folder knows the library, and it is loaded with the first call."""
