"""Notes and to-do lists, kept as Markdown files that a person reads and edits too."""
