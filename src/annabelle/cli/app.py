"""`annabelle`: finds the command and loads nothing else, so that `annabelle --help` answers at once."""

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
    """Shows commands from their one-line helps and imports the one that is asked for."""

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
    """A start takes seconds, and loading the command is the first part of it: say at once what is going on."""
    if name in _STARTING and not {"-h", "--help"} & set(arguments) and sys.stderr.isatty():
        importlib.import_module("annabelle.cli.spinner").first_words()


def load(name: str) -> TyperCommand | TyperGroup:
    """The command behind a name, with its options."""
    module = importlib.import_module(_BY_NAME[name].module)
    command = get_command(cast("typer.Typer", module.app))
    command.name = name
    return cast("TyperCommand | TyperGroup", command)


# Plain help needs no Rich, and the import of Rich costs more than everything else here together.
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
    """What is typed, piped or shown in another encoding gets a mark for each strange character, and passes."""
    sys.argv[1:] = [os.fsencode(word).decode("utf-8", errors="replace") for word in sys.argv[1:]]
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def main() -> None:
    """The process edge: every failure leaves as one sentence and its exit code."""
    _tolerate_any_bytes()
    try:
        code = get_command(app).main(standalone_mode=False)
    except Exception as error:  # noqa: BLE001  the process edge: shown in a sentence, the traceback kept in the log
        code = importlib.import_module("annabelle.cli.failure").show(error)
    sys.exit(code if isinstance(code, int) else 0)
