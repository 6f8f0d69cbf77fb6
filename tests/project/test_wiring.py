"""The composition root keeps its rules: everything is built from what was built before, by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import annabelle

SOURCE = Path(annabelle.__file__).parent
ROOTS = [SOURCE / "hub" / "boot.py", SOURCE / "thinker" / "assembly.py"]
MOST_POSITIONAL = 3
MOST_PARAMETERS = 7
ROWS = {"Sighting", "CommandCall"}
"""Rows of data, always made by name: not what a component is built from."""


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path)))


@pytest.mark.parametrize("path", ROOTS, ids=lambda path: path.name)
def test_no_lambda_stands_for_something_that_is_built_later(path: Path) -> None:
    assert [node.lineno for node in nodes(path) if isinstance(node, ast.Lambda)] == []


@pytest.mark.parametrize("path", ROOTS, ids=lambda path: path.name)
def test_nothing_is_set_on_a_component_after_it_was_built(path: Path) -> None:
    found: list[str] = []
    for node in nodes(path):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found += [
            ast.unparse(one)
            for target in targets
            for one in (target.elts if isinstance(target, ast.Tuple) else [target])
            if isinstance(one, ast.Attribute) and not (isinstance(one.value, ast.Name) and one.value.id == "self")
        ]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
            found.append(ast.unparse(node))
    assert found == []


def test_no_call_of_the_hubs_root_has_more_than_three_positional_arguments() -> None:
    calls = [node for node in nodes(ROOTS[0]) if isinstance(node, ast.Call)]
    assert [ast.unparse(one) for one in calls if len(one.args) > MOST_POSITIONAL] == []


def parameters(node: ast.ClassDef) -> int:
    """How many arguments a constructor takes, written out or made from the fields of a dataclass."""
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            return len(member.args.posonlyargs) + len(member.args.args) - 1 + len(member.args.kwonlyargs)
    if any("dataclass" in ast.unparse(one) for one in node.decorator_list):
        fields = [ast.unparse(member) for member in node.body if isinstance(member, ast.AnnAssign)]
        return sum("ClassVar" not in field and "init=False" not in field for field in fields)
    return 0


def test_no_constructor_of_the_hub_takes_more_than_seven_arguments() -> None:
    found = {
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path in sorted((SOURCE / "hub").rglob("*.py"))
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and node.name not in ROWS and parameters(node) > MOST_PARAMETERS
    }
    assert found == set()
