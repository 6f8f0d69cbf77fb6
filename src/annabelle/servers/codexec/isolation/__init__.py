"""What keeps executed code apart: one class for each way, all behind the same protocol."""
