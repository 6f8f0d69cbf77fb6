"""Answers what it is told, and tells what it sees of its environment."""
