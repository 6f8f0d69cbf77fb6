"""The MCP servers. Each is a folder of the same shape and its own process; nobody imports one. See README.md here."""
