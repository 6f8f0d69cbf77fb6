"""Runs code that nobody vouches for: Python, Node and Bash, each run in a cell of its own."""
