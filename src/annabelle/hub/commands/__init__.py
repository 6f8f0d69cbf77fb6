"""Commands that people give in a chat. They are answered by the hub itself, without a model (CMD-01)."""
