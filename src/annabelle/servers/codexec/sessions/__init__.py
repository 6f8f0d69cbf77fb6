"""Interpreters that are kept alive between calls."""
