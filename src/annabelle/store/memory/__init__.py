"""The memory database, one file per kind of row. Only the memory server opens it."""
