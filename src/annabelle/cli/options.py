"""What commands share: the Typer application and common options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

Command = TypeVar("Command", bound=Callable[..., None])

Json = Annotated[bool, typer.Option("--json", help="Print JSON for a machine to read.")]
Chat = Annotated[
    str, typer.Option("--chat", help="Name of the conversation; each has its own memory of what was said.")
]
New = Annotated[bool, typer.Option("--new", help="Start a fresh conversation.")]
Agent = Annotated[str | None, typer.Option("--agent", help="Ask this agent instead of the usual one.")]

DEFAULT_CHAT = "terminal"


def command_app(help_text: str | None = None) -> typer.Typer:
    """A Typer application with the settings that all commands share."""
    return typer.Typer(
        help=help_text,
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        no_args_is_help=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def run_by_default(app: typer.Typer) -> Callable[[Command], Command]:
    """Marks the command that runs if none is named. It must need nothing but `json`."""

    def register(command: Command) -> Command:
        @app.callback(invoke_without_command=True)
        def run(context: typer.Context, json: Json = False) -> None:  # pyright: ignore[reportUnusedFunction]  Typer uses it
            if context.invoked_subcommand is None:
                command(json=json)

        return command

    return register
