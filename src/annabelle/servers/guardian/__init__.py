"""Scans all tool input and output for text that tries to give orders. Only the hub calls it."""
