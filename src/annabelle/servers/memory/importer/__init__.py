"""Imports the rows of a file into the memory."""
