"""Decides which calls are allowed, from where content came and what the person said."""
