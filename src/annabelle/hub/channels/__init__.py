"""Channels in the hub: who may speak, what came in, and what is sent."""
