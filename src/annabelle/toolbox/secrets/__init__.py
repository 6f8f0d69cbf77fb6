"""Secrets on their way to a tool: handles in, values through, handles out (POL-06)."""
