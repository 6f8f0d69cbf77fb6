"""What a conversation taught, and how facts might be tidied: one model call each, nothing stored (MEM-07)."""
