"""What the model is told besides the message: who it is, what was said before, what time it is.

Static layers come first, then the history, then what changes each turn, right before the user's message: so the
prefix stays the same for a provider's cache, and the fresh parts are near.
"""
