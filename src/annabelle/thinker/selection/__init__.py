"""Which tools the model is shown in a turn."""
