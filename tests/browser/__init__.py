"""A package to pytest, so that its tests share a browser."""
