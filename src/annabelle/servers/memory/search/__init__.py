"""Finds what is remembered, by meaning and by words, for one owner at a time."""
