"""All access to the database: SQLite in the home by default, PostgreSQL by URL."""
