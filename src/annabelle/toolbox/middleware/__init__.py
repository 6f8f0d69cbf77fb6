"""Middleware around a tool client. Every call passes through all of it; `router.py` sets the order."""
