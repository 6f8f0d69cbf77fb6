"""Shared vocabulary of all packages. Imports none of them."""
