"""Durable workflows: what runs here survives a kill at any moment."""
