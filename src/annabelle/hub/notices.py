"""Notices for the owner about the hub itself, shown in `/status` and written to the log."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Literal

from pydantic import Field

from annabelle.core.messages import now
from annabelle.core.models import FrozenModel
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.status import ToolboxNotice as ServerNotice

_log = logging.getLogger(__name__)
STARTUP = "startup"
Level = Literal["info", "warning", "error"]
_LEVELS: dict[Level, int] = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class HubNotice(FrozenModel):
    """One thing worth telling."""

    topic: str = Field(description="What it is about; a newer notice with the same topic replaces it")
    level: Level = "info"
    text: str
    at: datetime = Field(default_factory=now)
    tell_owner: bool = Field(default=True, exclude=True, description="Whether it is sent to the owner's chat app")


class Notices:
    """The latest notices, one per topic, oldest first."""

    def __init__(self, keep: int = 50) -> None:
        self._notices: deque[HubNotice] = deque(maxlen=keep)
        self._listeners: list[Callable[[HubNotice], None]] = []

    def subscribe(self, listener: Callable[[HubNotice], None]) -> None:
        self._listeners.append(listener)

    def add(self, topic: str, text: str, level: Level = "info", *, tell_owner: bool | None = None) -> None:
        """Replace the notice of this topic. The owner is told of warnings and errors, unless it is said otherwise."""
        self.clear(topic)
        tell = level != "info" if tell_owner is None else tell_owner
        notice = HubNotice(topic=topic, level=level, text=text, tell_owner=tell)
        self._notices.append(notice)
        for listener in self._listeners:
            listener(notice)
        _log.log(_LEVELS[level], "%s: %s", topic, text)

    def startup(self, version: str, tools: int, servers: int) -> None:
        """Add the start-up notice: what is available, and what changed since the last start."""
        changes = [notice.text for notice in self._notices if notice.topic == STARTUP]
        noun = "server" if servers == 1 else "servers"
        ready = f"Annabelle {version} is ready: {tools} tools on {servers} {noun}."
        self.add(STARTUP, " ".join([ready, *changes]), tell_owner=True)

    def clear(self, topic: str) -> None:
        for notice in [notice for notice in self._notices if notice.topic == topic]:
            self._notices.remove(notice)

    def all(self) -> list[HubNotice]:
        return list(self._notices)


def forward_server_notices(toolbox: Toolbox, notices: Notices) -> None:
    def forward(notice: ServerNotice) -> None:
        if notice.kind == "startup_diff":
            notices.add(STARTUP, notice.text)  # the start-up notice repeats it
            return
        level: Level = "info" if notice.kind in ("servers_changed", "tool_hidden") else "warning"
        topic = notice.kind if notice.server is None else f"{notice.kind}:{notice.server}"
        notices.add(topic, notice.text, level)

    toolbox.on_notice(forward)
