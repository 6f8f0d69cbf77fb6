"""Records what agents spend, pauses those that spend too much, and tells the owner."""
