"""Puts the 1Password server together."""

from __future__ import annotations

from annabelle.servers.kit import ToolServer
from annabelle.servers.onepassword.browsing import Browsing
from annabelle.servers.onepassword.command import OpCommand
from annabelle.servers.onepassword.config import OnePasswordConfig
from annabelle.servers.onepassword.handles import Handles
from annabelle.servers.onepassword.reading import Reading

INSTRUCTIONS = (
    "The user's 1Password vaults, to read only. Secrets come as handles (secret://…), never as values: give a handle "
    "to a tool that takes secrets, as the browser does, and the value is put in its place on the way."
)


def build(config: OnePasswordConfig | None = None) -> ToolServer:
    """The server with all its tools. Nothing is run before a tool needs it."""
    config = config or OnePasswordConfig.from_environment()
    command = OpCommand(config)
    groups = [Browsing(command), Reading(command, Handles(seconds=config.handle_seconds))]
    return ToolServer("onepassword", groups, instructions=INSTRUCTIONS, readiness=command.missing)
