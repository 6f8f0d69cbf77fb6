"""`annabelle memory`: see, search, correct, move and tidy what Annabelle remembers."""

from __future__ import annotations

import typer

from annabelle.cli.memory import facts, maintenance, profile, search, transfer
from annabelle.cli.memory.client import Agent
from annabelle.cli.options import Json, command_app

app = command_app("See, search, correct, move and tidy what Annabelle remembers.")


@app.callback(invoke_without_command=True)
def memory(context: typer.Context, agent: Agent = None, json: Json = False) -> None:
    """See, search, correct, move and tidy what Annabelle remembers."""
    if context.invoked_subcommand is None:
        search.stats(agent=agent, json=json)


app.command()(search.search)
app.command("list")(facts.list_facts)
app.command()(facts.show)
app.command()(facts.why)
app.command()(facts.add)
app.command()(facts.edit)
app.command()(facts.rm)
app.command("bring-back")(facts.bring_back)
app.command()(search.timeline)
app.command()(search.stats)
app.command()(transfer.export)
app.command("import")(transfer.import_)
app.add_typer(profile.app, name="profile")
app.command()(maintenance.tidy)
app.command()(maintenance.undo)
app.command("changes")(maintenance.list_changes)
app.command()(maintenance.learn)
app.command()(transfer.embed)
app.command("backups")(maintenance.list_backups)
app.command()(maintenance.restore)
