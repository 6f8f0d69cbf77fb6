"""The source stays easy to enter: unique class names, nouns for files, no cycles, no long files, few import lines."""

from __future__ import annotations

import ast
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import grimp
import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "annabelle"
LONGEST = 450
SHORTEST_MEDIAN = 110
IMPORT_SHARE = 0.08
# Nouns of the field that happen to end like a participle, and what other code or a database knows by name.
NOUNS = {"feed", "metering", "ranking", "embedding", "receiving"}
VERB_FORM = re.compile(r"(?:ing|ed)$")


@dataclass(frozen=True)
class Source:
    """What the tests ask of a file: trees of the whole package would be looked through for garbage again and again."""

    lines: int
    classes: tuple[str, ...]
    imports: int


@cache
def sources() -> dict[Path, Source]:
    return {path: read_source(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def read_source(text: str) -> Source:
    found = list(statements(ast.parse(text).body))
    classes = tuple(one.name for one in found if isinstance(one, ast.ClassDef))
    return Source(len(text.splitlines()), classes, sum(isinstance(one, ast.Import | ast.ImportFrom) for one in found))


def statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """These and all inside them."""
    for one in body:
        yield one
        for part in ("body", "handlers", "cases", "orelse", "finalbody"):
            yield from statements(getattr(one, part, ()))


def is_migration(path: Path) -> bool:
    return "migrations" in path.parts


def test_a_class_name_stands_for_one_thing_in_the_whole_package() -> None:
    defined: defaultdict[str, list[str]] = defaultdict(list)
    for path, source in sources().items():
        for name in source.classes:
            defined[name].append(str(path.relative_to(PACKAGE)))
    assert len(defined) > 1000
    assert {name: files for name, files in defined.items() if len(files) > 1} == {}


def test_files_are_named_by_nouns() -> None:
    named = {path.stem for path in sources() if VERB_FORM.search(path.stem)}
    assert named - NOUNS == set()


@pytest.mark.parametrize("vague", ["utils", "helpers", "common", "misc"])
def test_no_file_is_a_place_for_anything(vague: str) -> None:
    assert [path for path in sources() if path.stem == vague or path.parent.name == vague] == []


def test_no_file_is_too_long_to_read_in_one_go() -> None:
    long = {path: one.lines for path, one in sources().items() if one.lines > LONGEST and not is_migration(path)}
    assert long == {}


def test_files_hold_enough_to_be_worth_opening() -> None:
    lengths = [one.lines for path, one in sources().items() if path.name not in ("__init__.py", "__main__.py")]
    assert statistics.median(lengths) >= SHORTEST_MEDIAN


def test_few_lines_are_imports() -> None:
    lines = sum(one.lines for one in sources().values())
    imports = sum(one.imports for one in sources().values())
    assert imports / lines <= IMPORT_SHARE


def test_no_module_imports_itself_through_others() -> None:
    """Imports for type checkers count as well: they show where two files are really one."""
    graph = grimp.build_graph("annabelle", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while leaves := [module for module, needed in imports.items() if not needed & imports.keys()]:
        for module in leaves:
            del imports[module]
    inside = {module for module in imports if any(module in needed for needed in imports.values())}
    assert inside == set()
