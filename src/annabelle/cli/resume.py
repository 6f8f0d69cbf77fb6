"""`annabelle resume`: resumes stopped agents."""

from __future__ import annotations

from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_outcome
from annabelle.cli.stop import HaltControl, Target
from annabelle.core.home import Home
from annabelle.hub.agents.halts import ALL

app = command_app()


@app.command()
def resume(agent: Target = ALL, json: Json = False) -> None:
    """Let an agent, or all of them, go on after annabelle stop. What was ended stays ended."""
    told = HaltControl(Home.from_environment()).resume(agent)
    print_outcome({"target": agent, "message": told.message, "how": told.how}, told.message, json=json)
