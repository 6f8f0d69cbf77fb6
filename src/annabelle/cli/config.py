"""`annabelle config`: shows settings and changes them in the home."""

from __future__ import annotations

import getpass
import sys
from typing import Annotated, cast

import typer
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from annabelle.cli.hub_process import running_hub
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import print_json, print_line, print_table
from annabelle.core.errors import CallerMistake
from annabelle.core.home import Home
from annabelle.core.settings import Settings, load_settings
from annabelle.core.settings_file import SettingsFile, check_value, find_setting, find_text, format_value, is_secret

MASK = "••••••••"

app = command_app("List, read and change settings.")
Name = Annotated[str, typer.Argument(help="Name of a setting, as `config list` shows it.")]


@run_by_default(app)
@app.command("list")
def list_settings(
    words: Annotated[str, typer.Argument(help="Only settings with this in their name or description.")] = "",
    changed: Annotated[bool, typer.Option("--changed", help="Only those that are not at their default.")] = False,
    json: Json = False,
) -> None:
    """List every setting with its value and where the value comes from. Secrets are masked."""
    home = Home.from_environment()
    settings, in_file = load_settings(home), SettingsFile(home.settings_file).values()
    rows = [
        (
            name,
            _format_value(getattr(settings, field_name), field),
            find_text(name, in_file)[0],
            field.description or "",
        )
        for field_name, field in Settings.model_fields.items()
        if words.lower() in f"{(name := field_name.upper())} {field.description}".lower()
    ]
    rows = [row for row in rows if row[2] != "default"] if changed else rows
    if json:
        print_json([dict(zip(("name", "value", "from", "description"), row, strict=True)) for row in rows])
    else:
        print_table(("SETTING", "VALUE", "FROM", "DESCRIPTION"), rows)


@app.command()
def get(name: Name, json: Json = False) -> None:
    """Print the value of one setting. Secrets are masked."""
    name, field = find_setting(name)
    home = Home.from_environment()
    value = _format_value(getattr(load_settings(home), name.lower()), field)
    if json:
        print_json({"name": name, "value": value, "from": _origin(name, home)})
    else:
        print_line(value)


@app.command("set")
def set_setting(
    name: Name,
    value: Annotated[
        str | None, typer.Argument(help="The new value. Leave it out for a secret, and it is asked for unseen.")
    ] = None,
    json: Json = False,
) -> None:
    """Change a setting in the home. The value is checked first; a running Annabelle takes it at its next start."""
    name, field = find_setting(name)
    home = Home.from_environment()
    text = value if value is not None else _ask(name, field)
    SettingsFile(home.prepare().settings_file).set(name, check_value(name, field, text))
    _print_outcome(name, f"{name} is set.", home, json)


@app.command()
def unset(name: Name, json: Json = False) -> None:
    """Return a setting to its default by removing it from the home."""
    name, _ = find_setting(name)
    home = Home.from_environment()
    removed = SettingsFile(home.settings_file).unset(name)
    _print_outcome(
        name, f"{name} is back at its default." if removed else f"{name} was not set in the home.", home, json
    )


def _ask(name: str, field: FieldInfo) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    text = getpass.getpass(f"{name}: ") if is_secret(field) else input(f"{name}: ")
    if not text:
        raise CallerMistake(f"No value was given for {name}.", hint=f"To remove it: annabelle config unset {name}")
    return text


def _format_value(value: object, field: FieldInfo) -> str:
    if isinstance(value, SecretStr) or is_secret(field):
        return MASK if value is not None and cast("SecretStr", value).get_secret_value() else ""
    return format_value(value)


def _origin(name: str, home: Home) -> str:
    return find_text(name, SettingsFile(home.settings_file).values())[0]


def _print_outcome(name: str, text: str, home: Home, json: bool) -> None:
    origin = _origin(name, home)
    running = running_hub(home) is not None
    if json:
        print_json({"name": name, "from": origin, "restart_needed": running})
        return
    print_line(text)
    if origin == "environment":
        print_line("The environment sets it too, and the environment wins.")
    if running:
        print_line("It counts from the next start: annabelle restart")
