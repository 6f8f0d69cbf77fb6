"""The failpoints at which a crash test may kill a thinker."""

from __future__ import annotations

from typing import Final

AFTER_ACCEPT: Final = "thinker.after_accept"
BEFORE_MODEL: Final = "thinker.before_model"
AFTER_MODEL: Final = "thinker.after_model"
BEFORE_TOOL: Final = "thinker.before_tool"
AFTER_TOOL: Final = "thinker.after_tool"
BEFORE_SESSION: Final = "thinker.before_session"
AFTER_SESSION: Final = "thinker.after_session"
AFTER_TURN: Final = "thinker.after_turn"

# Reached when a conversation is summarised or archived, not in every turn.
OLDER_KEPT: Final = "thinker.older_kept"
COMPACTED: Final = "thinker.compacted"
ARCHIVED: Final = "thinker.archived"
STARTED_AFRESH: Final = "thinker.started_afresh"
SUMMED_UP: Final = "thinker.summed_up"

FAILPOINTS: Final = (
    AFTER_ACCEPT,
    BEFORE_MODEL,
    AFTER_MODEL,
    BEFORE_TOOL,
    AFTER_TOOL,
    BEFORE_SESSION,
    AFTER_SESSION,
    AFTER_TURN,
)
