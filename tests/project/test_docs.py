"""Docs can not lie: references are made from code, links lead somewhere, every dependency has its reason."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from itertools import takewhile
from pathlib import Path
from types import ModuleType

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from annabelle import __version__
from annabelle.cli.app import app
from annabelle.hub.diagnosis.installation import ALWAYS, WHILE_STOPPED
from annabelle.hub.diagnosis.report import CHECKS
from support.few_servers import NAMES


@pytest.fixture
def gen_docs(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(root / "scripts")
    spec = importlib.util.spec_from_file_location("gen_docs", root / "scripts" / "gen_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = [
    "settings.md",
    "cli.md",
    "commands.md",
    "diagnosis.md",
    "servers/README.md",
    *(f"servers/{name}.md" for name in NAMES),
]


@pytest.mark.req("UX-03")
@pytest.mark.parametrize("page", PAGES)
def test_a_generated_page_is_up_to_date(root: Path, gen_docs: ModuleType, page: str):
    assert (root / "docs" / page).read_text() == gen_docs.PAGES[page](), "write it anew: make docs"


@pytest.mark.req("DIA-01", "DIA-04")
def test_every_check_is_documented_with_when_it_finds_something(root: Path):
    page = (root / "docs" / "diagnosis.md").read_text()
    undocumented = [
        check.id
        for check in (*CHECKS, *ALWAYS, *WHILE_STOPPED)
        if f"| `{check.id}` |" not in page or not check.found_when
    ]
    assert undocumented == []


def test_every_server_has_its_page_and_no_page_is_left_over(root: Path, gen_docs: ModuleType):
    written = {str(page.relative_to(root / "docs")) for page in (root / "docs" / "servers").glob("*.md")}
    assert written == {page for page in gen_docs.PAGES if page.startswith("servers/")}


def test_every_dependency_has_a_line_that_says_why(root: Path):
    project = tomllib.loads((root / "pyproject.toml").read_text())
    named = [
        *project["project"]["dependencies"],
        *(need for extra in project["project"]["optional-dependencies"].values() for need in extra),
        *(need for group in project["dependency-groups"].values() for need in group),
    ]
    page = (root / "docs" / "dependencies.md").read_text()
    names = [re.match(r"[\w.-]+", need) for need in named]
    assert [name[0] for name in names if name and f"`{name[0]}`" not in page] == []


@pytest.mark.req("UX-03")
def test_links_between_pages_lead_to_files(root: Path):
    broken = [
        f"{page.relative_to(root)}: {target}"
        for page in [root / "README.md", root / "CHANGELOG.md", *(root / "docs").rglob("*.md")]
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


def find_commands(page: str) -> list[str]:
    """The commands of a page: lines of its examples, and those its sentences name."""
    parts = page.replace("\\\n", " ").split("```")
    lines = [line.strip().removeprefix("$ ") for block in parts[1::2] for line in block.splitlines()]
    named = [span for text in parts[::2] for span in re.findall(r"`(annabelle [^`\n]+)`", text)]
    return [one for one in (*lines, *named) if one.startswith("annabelle ")]


def parse_command(words: list[str]) -> None:
    """Read the words as the terminal would, without doing anything."""
    context = get_command(app).make_context("annabelle", words)
    while isinstance(context.command, TyperGroup) and (rest := [*context._protected_args, *context.args]):
        name, command, rest = context.command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, rest, parent=context)


@pytest.mark.req("UX-03")
def test_every_command_that_a_page_names_exists_with_its_options(root: Path):
    wrong: list[str] = []
    found = 0
    for page in [root / "README.md", *(root / "docs").rglob("*.md")]:
        for command in find_commands(page.read_text()):
            words = list(takewhile(lambda word: word not in ("|", ">", "<"), shlex.split(command, comments=True)[1:]))
            found += 1
            try:
                parse_command(words)
            except typer.Exit:  # of --help
                pass
            except Exception as error:
                # A sentence may name a command without what it is used on.
                if not str(error).startswith("Missing parameter"):
                    wrong.append(f"{page.relative_to(root)}: {command}: {error}")
    assert found > 100, "the pattern finds them"
    assert wrong == []


@pytest.mark.req("PKG-01")
def test_the_first_screen_of_the_readme_has_the_two_commands(root: Path):
    first_screen = "\n".join((root / "README.md").read_text().splitlines()[:25])
    assert "make run" in first_screen
    assert "make test" in first_screen


def test_the_version_is_the_same_everywhere_and_in_the_changelog(root: Path):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
    assert f"## {__version__}" in (root / "CHANGELOG.md").read_text()


def test_the_licence_is_the_official_text(root: Path):
    text = (root / "LICENSE").read_text()
    assert text.lstrip().startswith("Apache License\n                           Version 2.0, January 2004")
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_architecture_names_files_that_exist(root: Path):
    page = (root / "docs" / "architecture.md").read_text()
    named = set(
        re.findall(r"`((?:cli|hub|thinker|servers|toolbox|policy|language|llm|durable|store|core)/[\w/.]*\w)/?`", page)
    )
    package = root / "src" / "annabelle"
    missing = {
        name for name in named if not (package / name).exists() and not (package / name).with_suffix(".py").exists()
    }
    assert len(named) > 40, "the pattern finds them"
    assert missing - {"servers/NAME"} == set()
