"""Where a crash test may kill the memory: between two batches of an import, and before all of it is committed."""

FAILPOINTS = ("memory.during_import", "memory.before_import_commit")
