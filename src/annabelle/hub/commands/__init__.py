"""Slash commands: answered by the hub itself, before any model is asked."""
