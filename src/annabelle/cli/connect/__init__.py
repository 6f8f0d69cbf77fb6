"""`annabelle connect`: connects Google, mail and Telegram accounts, lists and removes them."""

from __future__ import annotations

from annabelle.cli.connect import accounts, google, mail, telegram
from annabelle.cli.options import command_app, run_by_default

app = command_app("Connect your accounts: Google, a mailbox, Telegram.")

run_by_default(app)(accounts.print_connections)
app.command("google")(google.connect_google)
app.command("mail")(mail.connect_mail)
app.command("telegram")(telegram.connect_telegram)
app.command("remove")(accounts.remove)
