"""The hub as an MCP server, for other agents and their programs."""
