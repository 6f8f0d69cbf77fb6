"""Finds what is remembered, by meaning and by words, for one owner at a time."""

from annabelle.servers.memory.search.found import Found, Hit, Parts, Tier
from annabelle.servers.memory.search.search import Search, Weights

__all__ = ["Found", "Hit", "Parts", "Search", "Tier", "Weights"]
