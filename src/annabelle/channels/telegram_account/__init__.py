"""Telegram by the user's own account, through the server that holds it."""
