"""Where a crash test may kill the memory: during an import and before it is committed, and half through tidying."""

FAILPOINTS = ("memory.during_import", "memory.before_import_commit")
TIDYING_FAILPOINTS = ("memory.half_tidied",)
