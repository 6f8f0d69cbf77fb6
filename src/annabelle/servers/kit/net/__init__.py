"""Reaching the outside: never the user's own network by accident or by trick (SSRF)."""
