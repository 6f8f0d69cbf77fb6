"""The Telegram server on a Telegram that outlives it."""
