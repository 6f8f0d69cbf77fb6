"""Builds the prompt of a turn.

Static layers come first, then the history, then what changes each turn, right before the user's message. So the prefix
stays the same for a provider's cache.
"""
