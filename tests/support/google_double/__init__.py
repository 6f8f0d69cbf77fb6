"""A Google for tests: it keeps state, checks access, and fails where it is told to."""
