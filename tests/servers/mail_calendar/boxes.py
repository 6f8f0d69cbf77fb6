"""A mailbox of either kind, as the tests of the tools see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annabelle.servers.kit import ToolServer
from annabelle.servers.mail_calendar.config import MailCalendarConfig
from support.google_double.app import GoogleApp
from support.google_double.mail import MailPart
from support.mail_servers import MailServers


@dataclass
class Box:
    """The server with a connected account, and its counterpart."""

    kind: str
    server: ToolServer
    config: MailCalendarConfig
    address: str
    deliver: Callable[[bytes], None]
    """A mail comes in."""
    sent: Callable[[], list[bytes]]
    """What the counterpart has sent for us, in order."""

    async def call(self, name: str, /, **arguments: object) -> Any:
        return await self.server.tools[name].call(arguments)

    async def only(self, query: str = "in:inbox") -> Any:
        """The one mail a query finds."""
        (found,) = (await self.call("list_emails", query=query)).emails
        return found

    @property
    def workspace(self) -> Path:
        return self.config.files.workspace


@dataclass
class GoogleBox(Box):
    app: GoogleApp
    mail: MailPart


@dataclass
class ImapBox(Box):
    servers: MailServers
