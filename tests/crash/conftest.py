"""The crash run on PostgreSQL has a database of the server that its worker has."""

from support.postgres import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]
