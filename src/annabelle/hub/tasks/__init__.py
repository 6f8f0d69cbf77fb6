"""Work an agent delegates: to a subagent, or as a tool call in the background."""
