"""Servers for the tests of readiness."""
