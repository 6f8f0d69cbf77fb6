"""Starts and never says a word."""
