"""The points at which a crash test may kill the hub."""

from __future__ import annotations

FAILPOINTS = (
    "hub.after_receive",
    "hub.after_claim",
    "hub.before_turn",
    "hub.during_turn",
    "hub.after_turn",
    "hub.before_deliver",
    "hub.after_deliver",
    "hub.after_release",
    "hub.before_call",
    "hub.after_call",
    "hub.before_remember",
    "hub.after_remember",
)

APPROVAL_FAILPOINTS = ("hub.after_ask", "hub.after_park", "hub.after_decision", "hub.after_grant")
"""Reached only in turns that ask for approval."""

FORGETTING_FAILPOINTS = (
    "hub.forget_begun",
    "hub.forget_memory_done",
    "hub.forget_rows_masked",
    "hub.forget_store_done",
    "hub.forget_engines_done",
    "hub.forget_files_done",
    "hub.forget_verified",
    "hub.forget_recorded",
)
"""Reached only when something is forgotten."""

CHANNEL_FAILPOINTS = ("hub.after_update", "hub.after_update_read", "hub.before_send", "hub.after_send")
"""Reached only on the way from and to a chat app."""

SKILL_FAILPOINTS = ("hub.after_due", "hub.after_fire_begun", "hub.after_fire_work")
"""Reached only when a skill is due."""

GOAL_FAILPOINTS = ("hub.after_task",)
"""Reached only when a goal hands a task on."""
