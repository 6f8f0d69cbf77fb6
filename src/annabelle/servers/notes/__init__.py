"""Notes and to-do lists as Markdown files that a person can edit too."""
