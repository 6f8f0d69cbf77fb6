"""Builds the 1Password server."""

from __future__ import annotations

from annabelle.servers.kit import ToolServer
from annabelle.servers.onepassword.command import OnePasswordConfig, OpCommand
from annabelle.servers.onepassword.op_items import SecretHandles
from annabelle.servers.onepassword.vaults import VaultItemTools, VaultListTools

INSTRUCTIONS = (
    "The user's 1Password vaults, to read only. Secrets come as handles (secret://…), never as values: give a handle "
    "to a tool that takes secrets, as the browser does, and the value is put in its place on the way."
)


def build(config: OnePasswordConfig | None = None) -> ToolServer:
    """Build the server with all its tools. `op` runs only when a tool needs it."""
    config = config or OnePasswordConfig.from_environment()
    command = OpCommand(config)
    groups = [VaultListTools(command), VaultItemTools(command, SecretHandles(seconds=config.handle_seconds))]
    return ToolServer("onepassword", groups, instructions=INSTRUCTIONS, readiness=command.describe_missing)
