"""Removes a text everywhere: rows, indexes, free pages, journals, sessions, workflow tables, logs and copies."""
