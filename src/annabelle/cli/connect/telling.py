"""Tells a running Annabelle that an account has changed, so that its status is right at once."""

from __future__ import annotations

import asyncio
import sys

from annabelle.cli.hub_client import HubClient
from annabelle.core.errors import AnnabelleError, HubUnreachable, NotFound
from annabelle.core.home import Home

SERVERS = {"google": "gmail", "mail": "gmail", "telegram": "telegram"}
"""Which server uses which account."""


def tell_hub(home: Home, kind: str) -> bool:
    """Whether a hub runs and took it. One that does not run reads the account when it starts."""
    try:
        asyncio.run(_restart(home, SERVERS[kind]))
    except (HubUnreachable, NotFound):
        return False  # it does not run, or has this server switched off
    except AnnabelleError as error:
        sys.stderr.write(f"Annabelle runs but did not take it yet: {error.message}\nRun: annabelle restart\n")
        return False
    return True


async def _restart(home: Home, server: str) -> None:
    async with HubClient.of(home) as client:
        await client.post(f"/servers/{server}/restart", {})
