"""The source stays easy to enter: unique class names, nouns for files, no cycles, no long files, few import lines."""

from __future__ import annotations

import ast
import re
import statistics
from collections import defaultdict
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


@cache
def sources() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def is_migration(path: Path) -> bool:
    return "migrations" in path.parts


def line_count(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_a_class_name_stands_for_one_thing_in_the_whole_package() -> None:
    defined: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in defined.items() if len(files) > 1} == {}


def test_files_are_named_by_nouns() -> None:
    named = {path.stem for path in sources() if VERB_FORM.search(path.stem)}
    assert named - NOUNS == set()


@pytest.mark.parametrize("vague", ["utils", "helpers", "common", "misc"])
def test_no_file_is_a_place_for_anything(vague: str) -> None:
    assert [path for path in sources() if path.stem == vague or path.parent.name == vague] == []


def test_no_file_is_too_long_to_read_in_one_go() -> None:
    long = {str(path.relative_to(PACKAGE)): line_count(path) for path in sources() if not is_migration(path)}
    assert {file: lines for file, lines in long.items() if lines > LONGEST} == {}


def test_files_hold_enough_to_be_worth_opening() -> None:
    lengths = [line_count(path) for path in sources() if path.name not in ("__init__.py", "__main__.py")]
    assert statistics.median(lengths) >= SHORTEST_MEDIAN


def test_few_lines_are_imports() -> None:
    lines = sum(map(line_count, sources()))
    imports = sum(
        isinstance(node, ast.Import | ast.ImportFrom) for tree in sources().values() for node in ast.walk(tree)
    )
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
