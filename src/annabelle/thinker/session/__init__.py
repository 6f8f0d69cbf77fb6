"""What the model needs to remember of a conversation: one append-only record per turn (SES-01)."""
