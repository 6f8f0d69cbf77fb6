"""Packages of Python and Node for code that needs them."""
