"""Which model answers, in a line for the person, with the way to a better one."""

from __future__ import annotations

from annabelle.core.contract import AgentProfile
from annabelle.core.errors import AnnabelleError
from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.llm.choose import Chooser


async def model_line(home: Home) -> str:
    """The model that answers by the settings of now, and why; or why none can."""
    settings = load_settings(home)
    try:
        selection = await Chooser(settings, home, AgentProfile(agent_id=settings.thinker_agent_id)).choose()
    except AnnabelleError as error:
        return " ".join(filter(None, [error.message, error.hint]))
    return selection.choice.explanation
