"""Small MCP servers that misbehave on purpose, one folder each, shaped like the built-in ones."""
