"""Text to vectors: embedded and offline by default, other providers by setting, cached on disk."""
