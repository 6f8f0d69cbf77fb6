"""Reads names that end up in databases from the source, whatever the modules and classes around them are called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_APPLICATIONS = ("hub", "thinker")


@dataclass
class SourceNames:
    """The parsed modules of the package by their path."""

    modules: Mapping[str, ast.Module]

    @classmethod
    def read(cls, package: Path) -> SourceNames:
        """The applications, and every other file that may give an error its code; parsing all takes much longer."""
        found: dict[str, ast.Module] = {}
        for file in sorted(package.rglob("*.py")):
            path, text = str(file.relative_to(package)), file.read_text(encoding="utf-8")
            if path.partition("/")[0] in _APPLICATIONS or re.search(r"^ +code\b", text, re.MULTILINE):
                found[path] = ast.parse(text)
        return cls(found)

    def error_codes(self) -> set[str]:
        """Every `code = "…"` in a class."""
        found: set[str] = set()
        for node in self._nodes():
            if isinstance(node, ast.ClassDef):
                found |= {code for statement in node.body for code in _assigned_code(statement)}
        return found

    def workflows(self) -> list[str]:
        """Every name that is registered with `….workflow(NAME…)`."""
        return sorted({self._text(call.args[0]) for call in self._calls("workflow") if _names_something(call)} - {""})

    def steps(self) -> list[str]:
        """Every name given to `….step(NAME…)`, also through functions that hand a name on. `{}` stands for a value."""
        found: set[str] = set()
        asked, known = [("step", 0)], {("step", 0)}
        while asked:
            function, position = asked.pop()
            for call, around in self._calls_in_applications(function):
                if len(call.args) <= position:
                    continue
                argument = call.args[position]
                if text := self._text(argument):
                    found.add(text)
                elif isinstance(argument, ast.Name) and (place := _place(around, argument.id)) is not None:
                    handed_on = {(around.name, place)} - known
                    known |= handed_on
                    asked += handed_on
        return sorted(found)

    def durable_owners(self) -> list[dict[str, str]]:
        """Under which names the engine stores what each kind of process does."""
        wanted = ("name", "executor_id", "schema")
        found: list[dict[str, str]] = []
        for node in self._nodes():
            if isinstance(node, ast.Call):
                given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
                if {*wanted, "database_url"} <= set(given):
                    found.append({name: self._text(given[name]) for name in wanted})
        return sorted(found, key=lambda owner: owner["name"])

    def _text(self, node: ast.AST) -> str:
        """The text an expression stands for, as far as the source says it; empty when it does not."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        if isinstance(node, ast.JoinedStr):
            return "".join(self._text(part) or "{}" for part in node.values)
        if isinstance(node, ast.BinOp):
            return self._text(node.left)
        return self._constants.get(node.id, "") if isinstance(node, ast.Name) else ""

    @cached_property
    def _constants(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for module in self.modules.values():
            for node in module.body:
                target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
                value = getattr(node, "value", None)
                if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found[target.id] = value.value
        return found

    def _calls(self, method: str) -> Iterator[ast.Call]:
        for node in self._nodes():
            if isinstance(node, ast.Call) and _called(node) == method:
                yield node

    def _calls_in_applications(self, method: str) -> Iterator[tuple[ast.Call, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for path, module in self.modules.items():
            if path.partition("/")[0] in _APPLICATIONS:
                for function in ast.walk(module):
                    if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                        for node in ast.walk(function):
                            if isinstance(node, ast.Call) and _called(node) == method:
                                yield node, function

    def _nodes(self) -> Iterator[ast.AST]:
        for module in self.modules.values():
            yield from ast.walk(module)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _names_something(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Name | ast.Constant)


def _assigned_code(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.AnnAssign):
        targets, values = [statement.target], [statement.value]
    elif isinstance(statement, ast.Assign):
        target, value = statement.targets[0], statement.value
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) else [value]
    else:
        return
    for target, value in zip(targets, values, strict=False):
        named = isinstance(target, ast.Name) and target.id == "code"
        if named and isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
            yield value.value


def _place(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> int | None:
    """Which argument of a call this parameter is."""
    names = [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]
    return names.index(name) if name in names else None
