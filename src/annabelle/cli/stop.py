"""`annabelle stop`: end what Annabelle does, whatever hangs, and keep it from doing more."""

from __future__ import annotations

from typing import Annotated

import typer

from annabelle.cli.halting import Halting
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_json, print_paragraph
from annabelle.core.home import Home
from annabelle.hub.stopping.halts import ALL

Target = Annotated[str, typer.Argument(help="One agent by its id, or all.")]

app = command_app()


@app.command()
def stop(agent: Target = ALL, json: Json = False) -> None:
    """Stop an agent, or all of them: what runs ends at once, and nothing begins until annabelle resume.

    An Annabelle that does not answer within a second is ended itself; it starts stopped. annabelle down ends
    Annabelle in good order instead."""
    told = Halting(Home.from_environment()).stop(agent)
    if json:
        print_json({"target": agent, "message": told.message, "how": told.how, "turns": told.turns})
    else:
        print_paragraph(told.message)
