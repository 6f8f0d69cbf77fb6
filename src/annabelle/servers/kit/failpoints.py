"""Where a crash test may kill a server: before a tool begins, and after it ended but before its answer is sent."""

FAILPOINTS = ("server.before_tool", "server.after_tool")
