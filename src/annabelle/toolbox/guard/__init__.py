"""Has the guardian read what goes to tools, what comes back, and what people send."""
