"""Starts and ends server processes. Imports nothing: the fork server must stay light and single-threaded."""
