"""Plays the guardian: slow to start, and notes when it was ready."""
