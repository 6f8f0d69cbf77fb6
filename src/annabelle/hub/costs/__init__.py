"""Watches what agents spend: the last hour of each, the pause when it is too much, and who is told of it."""
