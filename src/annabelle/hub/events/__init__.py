"""The stream of what happens: written down first, then told to everyone who listens."""
