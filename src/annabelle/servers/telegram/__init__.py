"""The Telegram server: the user's own account, its chats, contacts and media, over MTProto."""
