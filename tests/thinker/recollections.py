"""What a memory may answer, and the prompt of a turn that was given it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from annabelle.core.contract import AgentProfile
from annabelle.thinker.prompt.clock import parse_time_zone
from annabelle.thinker.prompt.memory_recall import RecalledContext
from annabelle.thinker.prompt.persona import PersonaResolver
from annabelle.thinker.prompt.prompt import LayeredPromptBuilder, TurnContext, TurnPrompt
from annabelle.thinker.session.records import SessionTurn
from annabelle.thinker.session.session_store import SessionView

UTC_ZONE = parse_time_zone("UTC")
NOON = datetime(2026, 7, 3, 12, 0, tzinfo=UTC)
FACT: dict[str, Any] = {
    "id": 12,
    "fact": "The user lives in Lisbon.",
    "source": "chat",
    "trust": "trusted",
    "created_at": "2026-05-03T10:00:00+00:00",
}
PROFILE: dict[str, Any] = {
    "profile": {
        "persona": {"name": "Nell"},
        "user": {"city": "Lisbon", "languages": ["pt", "de"], "pets": {"cat": "Mia"}},
    },
    "version": 3,
    "trust": "trusted",
    "untrusted_fields": [],
}


async def built(
    tmp_path: Path, recalled: RecalledContext, text: str = "what now?", turns: tuple[SessionTurn, ...] = ()
) -> TurnPrompt:
    context = LayeredPromptBuilder(PersonaResolver(tmp_path, AgentProfile(agent_id="tess"), ""), UTC_ZONE)
    return await context.build(TurnContext(text, NOON, SessionView(turns), 20, "chat-1", recalled))
