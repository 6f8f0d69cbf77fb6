"""The sources of search results."""
