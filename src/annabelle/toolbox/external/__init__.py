"""Servers the user adds in `external-mcps.json`: read, resolved, watched and remembered."""
