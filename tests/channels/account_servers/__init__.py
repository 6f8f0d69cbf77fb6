"""Servers that hold an account, for a hub that reads it as a channel."""
