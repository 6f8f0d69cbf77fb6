"""Conversations month by month, to be read. They are imported from the JSON document only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from annabelle.servers.memory.files.marks import escaped

if TYPE_CHECKING:
    from annabelle.store.memory.conversations import Turn

KIND = "conversations"


def write_month(month: str, turns: Iterable[Turn], zone: ZoneInfo, agent: str) -> Iterator[str]:
    """The page of one month, piece by piece."""
    yield f"# Conversations of {month}\n\n<!-- annabelle {KIND} 1 -->\n"
    for turn in turns:
        mark = " (untrusted)" if turn.trust == "untrusted" else ""
        yield f"\n## {turn.said_at.astimezone(zone):%Y-%m-%d %H:%M} · {escaped(turn.session_id)}{mark}\n"
        for speaker, text in ((turn.speaker or "user", turn.user_message), (agent, turn.agent_response)):
            if text:
                yield f"\n**{escaped(speaker)}:** {escaped(text)}\n"
    yield f"\n<!-- end of {KIND} -->\n"
