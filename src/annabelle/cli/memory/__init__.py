"""`annabelle memory`: see, search, correct, move and tidy what Annabelle remembers."""

from __future__ import annotations

import typer

from annabelle.cli.memory import backups, facts, finding, moving, profile, tidying
from annabelle.cli.memory.answers import Agent
from annabelle.cli.options import Json, command_app

app = command_app("See, search, correct, move and tidy what Annabelle remembers.")


@app.callback(invoke_without_command=True)
def memory(context: typer.Context, agent: Agent = None, json: Json = False) -> None:
    """See, search, correct, move and tidy what Annabelle remembers."""
    if context.invoked_subcommand is None:
        finding.stats(agent=agent, json=json)


app.command()(finding.search)
app.command("list")(facts.list_facts)
app.command()(facts.show)
app.command()(facts.why)
app.command()(facts.add)
app.command()(facts.edit)
app.command()(facts.rm)
app.command("bring-back")(facts.bring_back)
app.command()(finding.timeline)
app.command()(finding.stats)
app.command()(moving.export)
app.command("import")(moving.import_)
app.add_typer(profile.app, name="profile")
app.command()(tidying.tidy)
app.command()(tidying.undo)
app.command("changes")(tidying.list_changes)
app.command()(tidying.learn)
app.command()(moving.embed)
app.command("backups")(backups.list_backups)
app.command()(backups.restore)
