"""Runs untrusted Python, Node and Bash code in a sandbox."""
