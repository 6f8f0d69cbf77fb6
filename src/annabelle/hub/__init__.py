"""The hub: the one process that talks to everyone. It holds no model code."""
