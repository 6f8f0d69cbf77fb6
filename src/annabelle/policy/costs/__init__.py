"""When spending has to stop: how fast an agent uses tokens, and what a day and a month may cost. Pure rules."""
