"""Standing rules: noticed in what a person says, kept in a book, read before every call of an agent."""
