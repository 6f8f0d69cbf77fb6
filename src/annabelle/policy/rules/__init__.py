"""Standing rules: what a person allows, forbids or wants to be asked about in every conversation."""
