"""How server processes come to life and end, seen from the hub."""
