"""Searching the web and reading its pages."""
