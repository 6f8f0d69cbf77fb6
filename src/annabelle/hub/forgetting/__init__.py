"""Forgets a text for good: rows, indexes, free pages, journals, sessions, the engine's tables, logs and copies."""
