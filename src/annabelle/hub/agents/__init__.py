"""The agents in agents.json, and the thinker process of each."""
