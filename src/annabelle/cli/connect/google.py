"""`annabelle connect google`: connects mail and calendar with a sign-in in the browser."""

from __future__ import annotations

import asyncio
import sys
import threading
import webbrowser
from typing import Annotated

import typer
from pydantic import SecretStr

from annabelle.cli.connect.accounts import notify_hub
from annabelle.cli.options import Json
from annabelle.cli.output import clean, print_json, print_line
from annabelle.cli.spinner import clear_status, show_status
from annabelle.cli.terminal_input import ask_line, check_line
from annabelle.core.connections import GoogleAccount, write_connection
from annabelle.core.errors import OperatorMistake, Unavailable
from annabelle.core.google_oauth import (
    SCOPES,
    GoogleOAuthUrls,
    OAuthAttempt,
    OAuthClient,
    OAuthDecision,
    OAuthRedirectServer,
    finish_sign_in,
    open_redirect_server,
)
from annabelle.core.home import Home
from annabelle.core.settings import Settings, load_settings


def connect_google(
    client_id: Annotated[
        str | None, typer.Option("--client-id", help="OAuth client of the type desktop application.")
    ] = None,
    client_secret: Annotated[
        str | None, typer.Option("--client-secret", help="Its secret; by default GOOGLE_CLIENT_SECRET, or asked for.")
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser; only show the address.")
    ] = False,
    wait: Annotated[int, typer.Option("--wait", min=1, max=3600, help="Seconds to wait for the sign-in.")] = 300,
    json: Json = False,
) -> None:
    """Sign in at Google, for mail and calendar. A browser opens; the answer comes back to this machine."""
    home = Home.from_environment()
    settings = load_settings(home)
    client = _load_client(settings, client_id, client_secret)
    addresses = GoogleOAuthUrls.from_base(settings.google_api_url)
    account = asyncio.run(_sign_in(addresses, client, browser=not no_browser, seconds=wait))
    write_connection(home.prepare(), "google", account)
    told = notify_hub(home, "google")
    missing = [name for scope, name in SCOPES.items() if scope not in account.scopes]
    if json:
        print_json({"kind": "google", "account": account.email, "not_allowed": missing, "hub_told": told})
        return
    print_line(f"Connected to Google as {clean(account.email)}.")
    if missing:
        print_line(f"Not allowed: {', '.join(missing)}. To allow it too, run it again and tick every box.")


def _load_client(settings: Settings, client_id: str | None, secret: str | None) -> OAuthClient:
    chosen = client_id or settings.google_client_id
    if not chosen:
        raise OperatorMistake(
            "There is no OAuth client for Google yet.",
            hint=(
                "Make one at console.cloud.google.com (APIs and services, Credentials, OAuth client ID, type desktop "
                "app), enable the Gmail and Calendar APIs there, and set GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET: "
                "annabelle config set GOOGLE_CLIENT_ID …"
            ),
        )
    if secret is None and settings.google_client_secret is not None and chosen == settings.google_client_id:
        return OAuthClient(chosen, settings.google_client_secret)
    given = secret if secret is not None else ask_line("Client secret", "--client-secret", secret=True)
    return OAuthClient(check_line("The client id", chosen), SecretStr(check_line("The client secret", given)))


async def _sign_in(addresses: GoogleOAuthUrls, client: OAuthClient, *, browser: bool, seconds: int) -> GoogleAccount:
    async with open_redirect_server() as redirect:
        attempt = OAuthAttempt(redirect.address)
        address = attempt.sign_in_url(addresses, client)
        # stdout is reserved for the result.
        sys.stderr.write(f"Sign in to Google here:\n{address}\n")
        sys.stderr.flush()
        if browser:
            # Terminal browsers block until closed, so open them in a thread while waiting.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        decision = await _wait_for_decision(redirect, attempt.state, seconds)
        return await finish_sign_in(addresses, client, attempt, decision)


async def _wait_for_decision(redirect: OAuthRedirectServer, state: str, seconds: int) -> OAuthDecision:
    """Wait for the person's decision with a visible countdown."""
    deciding = asyncio.create_task(redirect.wait_for_decision(state))
    try:
        for left in range(seconds, 0, -1):
            show_status(f"Waiting for you in the browser ({left} s)")
            done, _ = await asyncio.wait([deciding], timeout=1)
            if done:
                return deciding.result()
    finally:
        deciding.cancel()
        clear_status()
    raise Unavailable(
        f"Nobody signed in within {seconds} seconds.", hint="Nothing was kept. Run it again: annabelle connect google"
    )
