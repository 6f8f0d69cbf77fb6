"""The memory: what Annabelle knows of a person, found again by words and by meaning."""
