"""The agents of an install: what agents.json says about them, and the thinker process each one runs in."""
