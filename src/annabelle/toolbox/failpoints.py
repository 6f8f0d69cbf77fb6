"""The moments of a tool call at which a crash test may kill the hub."""

FAILPOINTS = (
    "toolbox.before_begin",
    "toolbox.before_dispatch",
    "toolbox.after_dispatch",
    "toolbox.before_result_recorded",
    "toolbox.after_result_recorded",
)
