"""Memory as files: editable Markdown pages, and one JSON document with everything."""
