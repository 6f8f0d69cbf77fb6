"""Finds and imports only the requested command, so that `annabelle --help` is fast."""

from __future__ import annotations

import importlib
import io
import os
import sys
from typing import cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from annabelle.cli.commands import COMMANDS

_BY_NAME = {command.name: command for command in COMMANDS}
_STARTING = {"chat", "ask", "up"}
_HELP = """A self-hosted, security-first personal AI assistant.

Without a command: starts everything and opens a chat. Lines piped to it are answered one by one; with no input at all
it serves until it is stopped."""


class LazyGroup(TyperGroup):
    """Lists commands by their one-line help and imports the requested one."""

    def __init__(self, **attributes: object) -> None:
        super().__init__(**attributes)  # pyright: ignore[reportArgumentType]
        self.commands = {command.name: TyperCommand(command.name, help=command.help) for command in COMMANDS}

    def resolve_command(self, ctx: typer.Context, args: list[str]):  # pyright: ignore[reportIncompatibleMethodOverride]
        name, command, rest = super().resolve_command(ctx, args)
        if name in _BY_NAME:
            _announce(name, rest)
            command = load(name)
        return name, command, rest


def _announce(name: str, arguments: list[str]) -> None:
    """Show at once that Annabelle is starting, since even importing the command takes time."""
    if name in _STARTING and not {"-h", "--help"} & set(arguments) and sys.stderr.isatty():
        importlib.import_module("annabelle.cli.spinner").first_words()


def load(name: str) -> TyperCommand | TyperGroup:
    module = importlib.import_module(_BY_NAME[name].module)
    command = get_command(cast("typer.Typer", module.app))
    command.name = name
    return cast("TyperCommand | TyperGroup", command)


# Importing Rich for the help would take longer than everything else here.
app = typer.Typer(
    cls=LazyGroup,
    name="annabelle",
    help=_HELP,
    invoke_without_command=True,
    no_args_is_help=False,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _start(context: typer.Context) -> None:  # pyright: ignore[reportUnusedFunction]  Typer calls it
    if context.invoked_subcommand is None:
        _announce("chat", [])
        load("chat").main(args=[], prog_name="annabelle", standalone_mode=True)


def _tolerate_any_bytes() -> None:
    """Replace undecodable characters in arguments and streams instead of failing."""
    sys.argv[1:] = [os.fsencode(word).decode("utf-8", errors="replace") for word in sys.argv[1:]]
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def main() -> None:
    """Run the command; every failure ends with one sentence and an exit code."""
    _tolerate_any_bytes()
    try:
        code = get_command(app).main(standalone_mode=False)
    except Exception as error:  # noqa: BLE001  the process edge: shows a sentence and logs the traceback
        code = importlib.import_module("annabelle.cli.failure").show(error)
    sys.exit(code if isinstance(code, int) else 0)
