"""Keeps servers alive: starts, pings, restarts and stops them."""
