"""The calendar's tools, put together."""

from __future__ import annotations

from annabelle.servers.gmail.calendar.desk import Clock, ConnectedAccounts, Desk
from annabelle.servers.gmail.calendar.freeing import Freeing
from annabelle.servers.gmail.calendar.reading import Reading
from annabelle.servers.gmail.calendar.writing import Writing
from annabelle.servers.gmail.config import GmailConfig
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.kit.overflow import Overflow


def calendar_groups(accounts: ConnectedAccounts, config: GmailConfig, clock: Clock | None = None) -> list[object]:
    """All eight tools. `clock` is the one to go by; the machine's own without it."""
    desk = Desk(accounts, config.timezone, config.reach, clock)
    return [Reading(desk, Overflow(Workspace(config.files))), Writing(desk), Freeing(desk)]
