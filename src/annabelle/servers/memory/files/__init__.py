"""Memory as files: pages a person can read and edit, and one document that holds everything."""
