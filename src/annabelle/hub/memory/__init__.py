"""The hub's part of the memory: stores delivered turns, extracts and tidies facts."""
