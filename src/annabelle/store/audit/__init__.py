"""The audit: what was done and decided, line by line, each chained to the one before (GRD-08, TRU-08)."""
