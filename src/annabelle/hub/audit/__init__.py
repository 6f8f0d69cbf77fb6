"""The audit of a running hub: opened with it, told of what happens, closed with it."""
