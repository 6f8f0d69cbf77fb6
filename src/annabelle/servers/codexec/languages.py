"""How each language is started on code in a file, and how on a session."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from annabelle.servers.codexec.programs import Language

SessionLanguage = Literal["python", "node"]

_DRIVERS = "annabelle.servers.codexec.drivers"
_NODE_HEAP_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Start:
    """The files that make up the code, and the arguments of the interpreter; `{code}` is the folder they are in."""

    files: dict[str, str]
    arguments: tuple[str, ...]

    def argv(self, folder: str) -> tuple[str, ...]:
        return tuple(argument.replace("{code}", folder, 1) for argument in self.arguments)


def start_of(language: Language, code: str, memory_mb: int) -> Start:
    """One run of a piece of code."""
    if language == "python":
        return Start({"main.py": code}, (*_PYTHON, "{code}/main.py"))
    if language == "node":
        return Start({"main.mjs": code, "run.cjs": _driver("run.cjs")}, (*_node(memory_mb), "{code}/run.cjs"))
    return Start({"main.sh": code}, ("--noprofile", "--norc", "{code}/main.sh"))


def start_of_session(language: SessionLanguage, memory_mb: int) -> Start:
    """An interpreter that waits for pieces of code."""
    if language == "python":
        return Start({"session.py": _driver("session.py")}, (*_PYTHON, "{code}/session.py"))
    return Start({"session.cjs": _driver("session.cjs")}, (*_node(memory_mb), "{code}/session.cjs"))


_PYTHON = ("-u", "-B", "-X", "utf8")


def _node(memory_mb: int) -> tuple[str, ...]:
    return (f"--max-old-space-size={int(memory_mb * _NODE_HEAP_SHARE)}",)


@cache
def _driver(name: str) -> str:
    return files(_DRIVERS).joinpath(name).read_text(encoding="utf-8")
