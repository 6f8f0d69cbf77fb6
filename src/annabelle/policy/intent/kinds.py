"""The kinds of action people ask for and agents claim to have done."""

from __future__ import annotations

from typing import Literal

ActionKind = Literal[
    "send", "create", "update", "delete", "schedule", "remember", "transfer", "pay", "run", "control", "search", "done"
]
