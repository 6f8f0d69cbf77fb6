"""What the toolbox wants a person to know: a server that came, went, flaps or is set up wrongly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

NoticeKind = Literal[
    "startup_diff", "servers_changed", "external_config", "flapping", "server_disabled", "server_held", "tool_hidden"
]


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence for a person, and which server it is about, if about one."""

    kind: NoticeKind
    text: str
    server: str | None = None


NoticeListener = Callable[[Notice], None]
ChangeListener = Callable[[str], None]
"""Told the new version of the tool list whenever the list changes."""
