"""Keeps servers alive: started, watched, restarted with patience, and stopped without a trace."""
