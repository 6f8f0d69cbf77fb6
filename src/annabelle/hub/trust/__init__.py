"""Loads the facts that policy decides from, and asks policy before every call of an agent."""
