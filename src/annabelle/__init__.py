"""Annabelle: a self-hosted, security-first personal AI assistant."""

__version__ = "0.1.0"
