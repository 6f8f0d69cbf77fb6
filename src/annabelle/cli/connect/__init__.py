"""`annabelle connect`: connects Google, mail and Telegram accounts, lists and removes them."""

from __future__ import annotations

import typer

from annabelle.cli.connect import accounts, google, mail, telegram
from annabelle.cli.options import Json, command_app

app = command_app("Connect your accounts: Google, a mailbox, Telegram.")


@app.callback(invoke_without_command=True)
def connect(context: typer.Context, json: Json = False) -> None:
    """Connect your accounts: Google, a mailbox, Telegram. Without a command: what is connected."""
    if context.invoked_subcommand is None:
        accounts.print_connections(json=json)


app.command("google")(google.connect_google)
app.command("mail")(mail.connect_mail)
app.command("telegram")(telegram.connect_telegram)
app.command("remove")(accounts.remove)
