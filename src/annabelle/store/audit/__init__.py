"""The audit: a log of actions and decisions, each line chained to the previous one (GRD-08, TRU-08)."""
