"""The hub: the central process, without model code."""
