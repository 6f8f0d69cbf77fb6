"""Lacks something until a file is there."""
