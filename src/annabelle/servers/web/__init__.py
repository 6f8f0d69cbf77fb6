"""Browser server: an installed Chromium, with one profile per agent."""
