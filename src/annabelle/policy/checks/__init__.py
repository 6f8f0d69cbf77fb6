"""Reasons to ask before a call, one module per kind of action."""
