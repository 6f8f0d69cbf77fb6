"""Standing rules: what a person allows, wants to be asked about, or forbids, whatever a conversation says."""
