"""`annabelle --help` answers at once, because it loads no command; every command explains itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from typer.core import TyperCommand, TyperGroup

from annabelle.cli.app import load
from annabelle.cli.commands import COMMANDS
from annabelle.core.home import Home
from annabelle.core.ids import new_id
from cli.terminal import environment, run

HEAVY = ("pydantic", "rich", "httpx2", "asyncio", "sqlalchemy", "mcp", "dbos", "fastapi", "pydantic_ai")


@pytest.mark.req("UX-01")
def test_help_names_every_command_and_imports_nothing_heavy(home: Home):
    program = (
        "import sys; sys.argv = ['annabelle', '--help']\n"
        "from annabelle.cli.app import main\n"
        "try:\n    main()\n"
        f"finally:\n    print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    shown = subprocess.run([sys.executable, "-c", program], env=environment(home), capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert [command.name for command in COMMANDS if f"  {command.name} " not in shown.stdout] == []
    assert shown.stdout.splitlines()[-1] == "[]"


def walk(command: TyperCommand | TyperGroup) -> Iterator[TyperCommand | TyperGroup]:
    """A command and all below it."""
    yield command
    for below in getattr(command, "commands", {}).values():
        yield from walk(below)


@pytest.mark.req("UX-01")
@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_and_all_below_it_have_help_and_json(command: str):
    for one in walk(load(command)):
        options = [option for parameter in one.params for option in parameter.opts]
        assert "--json" in options or command == "mcp", one.name  # it speaks JSON already
        assert (one.help or "").strip(), one.name


def test_a_misspelled_command_names_the_closest_and_ends_with_2(home: Home):
    refused = run(environment(home), "statsu")
    assert refused.returncode == 2
    assert "status" in refused.stderr


def test_a_wrong_option_is_told_to_a_machine_as_json(home: Home):
    refused = run(environment(home), "status", "--json", "--nope")
    assert refused.returncode == 2
    assert json.loads(refused.stderr)["error"]["code"] == "usage"


@pytest.mark.req("UX-01")
def test_what_nobody_foresaw_is_one_sentence_and_its_traceback_is_in_the_log(home: Home):
    home.traces_file.mkdir()  # a folder where a file belongs
    refused = run(environment(home), "trace", new_id("tr"))
    assert refused.returncode == 1
    assert "Something went wrong inside Annabelle: IsADirectoryError." in refused.stderr
    assert len(refused.stderr.splitlines()) == 2
    assert "Traceback" in (home.logs / "cli.log").read_text()


def test_with_debug_the_traceback_is_shown(home: Home):
    refused = run(environment(home, ANNABELLE_DEBUG="1"), "status")
    assert "Traceback" in refused.stderr
    assert "Annabelle is not running." in refused.stderr


def test_version(home: Home):
    assert run(environment(home), "version").stdout.startswith("Annabelle 0.")
    assert set(json.loads(run(environment(home), "version", "--json").stdout)) == {"version", "python"}
