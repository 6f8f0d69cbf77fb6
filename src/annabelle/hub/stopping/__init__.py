"""Stop: out of band, whatever hangs, and for good until it is resumed (TRU-06, I-27)."""
