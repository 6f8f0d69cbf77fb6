"""Writes a line to a file each time it acts, so that a test can count effects."""
