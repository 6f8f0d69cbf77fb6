"""Work an agent hands on: a subagent with a task of its own, or one tool call in the background."""
