"""Tools the hub serves itself, under plain names (RTR-05)."""
