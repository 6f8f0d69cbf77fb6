"""Wrappers around a tool client. Every call passes all of them on its way to a server; `router.py` gives the order."""
