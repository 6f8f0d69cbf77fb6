"""Prints garbage, answers with far too much, goes deaf, and changes its tools."""
