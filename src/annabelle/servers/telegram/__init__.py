"""Telegram: the user's own account, its chats, people and media, through MTProto."""
