"""Write the references that are made from code: settings, commands and servers. `--check` only says what is stale."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from server_docs import names as server_names, pages as server_pages, read_manifest as server_manifest
from typer import Context
from typer.core import TyperCommand, TyperGroup

from annabelle.cli.app import load
from annabelle.cli.commands import COMMANDS
from annabelle.core.settings import Settings
from annabelle.hub.commands.catalogue import COMMANDS as CHAT_COMMANDS
from annabelle.hub.diagnosis.check import Check
from annabelle.hub.diagnosis.installation import ALWAYS, WHILE_STOPPED
from annabelle.hub.diagnosis.report import CHECKS
from annabelle.toolbox.manifest import variable_name

DOCS = Path(__file__).resolve().parent.parent / "docs"
WIDTH = 100
NOTE = "<!-- Made by scripts/gen_docs.py; `make docs` rewrites it. -->"


def settings_page() -> str:
    """Every setting with its default, what it may be, and what it is for."""
    lines = [
        "# Settings",
        "",
        NOTE,
        "",
        "A setting comes from the environment, else from `config/settings.env` in the home, else from its default.",
        "`annabelle config list` shows the values in force and where they come from, `annabelle config set NAME VALUE`",
        "changes one after checking it. `ANNABELLE_HOME` names the home itself (`~/.annabelle` when unset).",
    ]
    for title, names in _groups():
        lines += [
            "",
            f"## {title.capitalize()}",
            "",
            "| setting | default | allowed | what it is for |",
            "|---|---|---|---|",
        ]
        for name in names:
            field = Settings.model_fields[name]
            cells = (f"`{name.upper()}`", _default(field), _allowed(field), field.description or "")
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, *_server_settings()]) + "\n"


def _server_settings() -> list[str]:
    """The two settings every server has, with the time limit each built-in one comes with."""
    lines = [
        "",
        "## Each server",
        "",
        "Every server, built-in or external, has two settings that start with its name in capitals.",
        "`NAME_MCP_ENABLED=false` switches it off. `NAME_MCP_TIMEOUT` is the time one call may take, in",
        "seconds, and overrides every other limit. Without it the server's own limit holds, and for a server without",
        "one `TOOL_TIMEOUT_SECONDS`.",
        "",
        "| server | on or off | time limit | default |",
        "|---|---|---|---|",
    ]
    for folder in server_names():
        manifest = server_manifest(folder)
        prefix, limit = variable_name(str(manifest["name"]), ""), manifest.get("timeout")
        default = "`TOOL_TIMEOUT_SECONDS`" if limit is None else f"`{limit}`"
        lines.append(f"| {manifest['name']} | `{prefix}ENABLED` | `{prefix}TIMEOUT` | {default} |")
    return lines


def _groups() -> list[tuple[str, list[str]]]:
    """The fields under the headings their source gives them."""
    groups: list[tuple[str, list[str]]] = []
    for line in inspect.getsource(Settings).splitlines():
        if heading := re.fullmatch(r"    # (.+)", line):
            groups.append((heading[1], []))
        elif (field := re.match(r"    (\w+):", line)) and field[1] in Settings.model_fields:
            groups[-1][1].append(field[1])
    assert sum(len(names) for _, names in groups) == len(Settings.model_fields), "a setting stands under no heading"
    return groups


def _default(field: FieldInfo) -> str:
    if field.default is None or field.default == "":
        return "–"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def _allowed(field: FieldInfo) -> str:
    kinds = [kind for kind in (get_args(field.annotation) or (field.annotation,)) if kind is not type(None)]
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(field.annotation))
    words = {
        bool: "true or false",
        int: "whole number",
        float: "number",
        str: "text",
        Path: "path",
        SecretStr: "secret",
    }
    bounds = [
        f"{sign} {getattr(rule, name):g}"
        for rule in field.metadata
        for name, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<"))
        if getattr(rule, name, None) is not None
    ]
    return " ".join([words.get(kinds[0], "text"), ", ".join(bounds)]).strip()


def cli_page() -> str:
    """Every command with its help, as it prints it."""
    lines = [
        "# Commands",
        "",
        NOTE,
        "",
        "`annabelle` alone starts everything and opens a chat. Every command has `--help`; those a machine may read",
        "have `--json`, which prints one JSON document on stdout. An error is one sentence and a hint on stderr; the",
        "exit code says who has to act:",
        "",
        "| exit code | meaning |",
        "|---|---|",
        "| 0 | it worked |",
        "| 1 | it failed; the sentence says why |",
        "| 2 | the command or a setting is wrong |",
        "| 3 | the disk or the database is in trouble |",
        "| 4 | another process owns this home |",
        "| 5 | Annabelle does not run or can not be reached |",
        "| 6 | the answer is a question that waits for your yes: `annabelle approvals` |",
        "| 130 | interrupted |",
        "",
        "`ANNABELLE_DEBUG=1` shows the traceback behind an error.",
    ]
    for command in COMMANDS:
        lines += _sections(load(command.name), f"annabelle {command.name}", "##")
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """Every command of the chat, from the registry, with calls that the tests make."""
    lines = [
        "# Commands in the chat",
        "",
        NOTE,
        "",
        "Said as a message in any chat: in the terminal (Tab completes them), in a chat app (where they stand in its",
        "menu), over HTTP. The hub answers them itself: no model is asked, nothing is scanned, no token is spent, and",
        "they work while an agent is stopped or paused. They are no part of what a model sees of the conversation, and",
        "nothing can be done in their name: only your own messages are commands, never what another agent, a skill, a",
        "mail or a page says. A command that is delivered twice is carried out once.",
        "",
        "| command | what it does | who |",
        "|---|---|---|",
    ]
    for info in (command.info for command in CHAT_COMMANDS):
        name = info.synopsis.replace("|", "\\|")
        lines.append(f"| `{name}` | {info.summary} | {'admins' if info.admin else 'everybody'} |")
    examples = "\n".join(example for command in CHAT_COMMANDS for example in command.info.examples)
    return "\n".join(lines) + ABOUT_COMMANDS.replace("EXAMPLES", examples)


ABOUT_COMMANDS = """

Admins are the owner and those whom the owner made admins: `annabelle users admin NAME`. A token must have the scope for
what a command does ([users.md](users.md)): `approve` for `/approve` and `/deny`, `threads` for `/delete`, `manage` for
what concerns the whole home.

A message with another word behind the slash goes to the model as it is. If it is close to a command, the command is
offered instead. `/name@bot`, as chat apps write it in groups, is the same as `/name`.

## Examples

```
EXAMPLES
```

## Stopping a part

`/kill` stops everything, `/kill thinker` all agents, `/kill scheduler` what runs by itself, `/kill telegram` a channel.
What is stopped stays so over restarts until `/resume`, or `annabelle resume` in the terminal ([stop.md](stop.md)). What
became due while the scheduler was stopped is treated as missed: each skill says whether it is made up for.

## A new conversation

`/new` ends the thread of the chat and opens another one. The model sees nothing of the old one, and foreign content
that was read there makes nothing more doubtful in the new one. Open questions of the old thread are taken back. Skills
that report to the chat report to the new thread. The old one stays readable: `annabelle sessions`.

## Deleting

`/delete` first says how much it would delete, and does it when you press the button or add `confirm`. It deletes what
was said in this chat in that time, in whole turns: from the model's history and its archive, and from the hub's
messages. What the memory has learnt from it stays, facts as well as conversations that can be recalled; `annabelle
forget` removes a text everywhere. `/delete messages …` removes messages from a chat app, where the app lets it.
"""


def _sections(command: object, name: str, heading: str) -> list[str]:
    """A command's help under its heading, then that of each command within it, one level deeper."""
    assert isinstance(command, TyperCommand | TyperGroup)
    lines = ["", f"{heading} {name}", "", *_help(command, name)]
    if isinstance(command, TyperGroup):
        for inner_name, inner in command.commands.items():
            lines += _sections(inner, f"{name} {inner_name}", f"{heading}#")
    return lines


def _help(command: TyperCommand | TyperGroup, name: str) -> list[str]:
    context = Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    return ["```text", *(line.rstrip() for line in command.get_help(context).splitlines()), "```"]


def diagnosis_page() -> str:
    """The page as it is written, with the tables between its markers made from the checks."""
    page = _read(DOCS / "diagnosis.md")
    for name, checks in (("checks", CHECKS), ("always", ALWAYS), ("stopped", WHILE_STOPPED)):
        begin, end = f"<!-- {name}: made by scripts/gen_docs.py -->", f"<!-- end of {name} -->"
        before, _, rest = page.partition(begin)
        after = rest.partition(end)[2]
        page = "\n".join([f"{before}{begin}", *_check_table(checks), f"{end}{after}"])
    return page


def _check_table(checks: Sequence[Check]) -> list[str]:
    rows = [
        f"| `{check.id}` | {check.category} | {', '.join(check.severities)} | {check.found_when} |"
        f" {'' if check.needs_hub else '✓'} |"
        for check in checks
    ]
    return ["| check | category | severity | found when | without a hub |", "|---|---|---|---|---|", *rows]


PAGES = {
    "settings.md": settings_page,
    "cli.md": cli_page,
    "commands.md": commands_page,
    "diagnosis.md": diagnosis_page,
    **server_pages(),
}


def main(check: bool) -> int:
    stale = 0
    for name, page in PAGES.items():
        text = page()
        if _read(DOCS / name) == text:
            continue
        stale += 1
        if check:
            sys.stderr.write(f"docs/{name} is out of date. Write it anew: make docs\n")
        else:
            (DOCS / name).parent.mkdir(exist_ok=True)
            (DOCS / name).write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
