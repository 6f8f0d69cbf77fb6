"""Finds what is remembered, by meaning and by words, for one owner at a time."""

from annabelle.servers.memory.search.ranking import HitScore, MemoryHit, SearchHits, Tier
from annabelle.servers.memory.search.search import Search, SearchWeights

__all__ = ["HitScore", "MemoryHit", "Search", "SearchHits", "SearchWeights", "Tier"]
