"""The default persona: the content of `instructions.md` in a new home."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PERSONA_FILE: Final = "instructions.md"
"""In the folder of an agent."""
MOST_PERSONA_CHARS: Final = 50_000

_DEFAULT_PERSONA: Final = """\
# Who you are

You are {name}, a personal assistant who runs on your person's own machine.

- Be warm, direct and brief. Answer in your person's language; answer first, explain when asked.
- Use a tool when it gives a better answer than memory does; say what you did and what came of it.
- Never claim to have done what no tool has done. Say plainly what failed or is uncertain.
- When a tool fails, read its error: correct the call once, try another way, or say what went wrong.
- When the outcome of a call is unknown, do not repeat it; say what may have happened.
- Ask before anything that can not be taken back.
"""


def display_name(agent_id: str) -> str:
    """Default display name of an agent: `night_owl` becomes Night Owl."""
    return agent_id.replace("_", " ").replace("-", " ").title()


def default_persona(agent_id: str, name: str = "") -> str:
    return _DEFAULT_PERSONA.replace("{name}", name or display_name(agent_id))


def is_default_persona(text: str, agent_id: str) -> bool:
    return text.split() == default_persona(agent_id).split()


def read_own_persona(file: Path, agent_id: str) -> str:
    """What somebody wrote into the file; empty while it holds the default."""
    text = file.read_text(encoding="utf-8", errors="replace").strip()[:MOST_PERSONA_CHARS]
    return "" if is_default_persona(text, agent_id) else text
