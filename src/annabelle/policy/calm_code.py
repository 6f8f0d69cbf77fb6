"""Whether a program only computes: it works on files the person named, and on nothing else (POL-04).

Read as a tree, never run. What can not be understood is not calm; other languages than Python are not understood.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from posixpath import basename
from typing import Final

from annabelle.policy.naming import Said

_COMPUTING: Final = """
bisect calendar collections csv dataclasses datetime decimal fractions functools heapq io itertools json locale math
matplotlib numpy operator pandas pprint random re scipy seaborn statistics string textwrap typing unicodedata zoneinfo
"""
_LIBRARIES: Final = frozenset(_COMPUTING.split())
_REACHING_ROUND: Final = "breakpoint compile delattr eval exec getattr globals input locals setattr vars"
# Libraries that compute have these in their own bags.
_WAYS_OUT: Final = frozenset(
    {"os", "sys", "subprocess", "shutil", "pathlib", "builtins", "importlib", "socket", "ctypes"}
)
_WILD: Final = frozenset(_REACHING_ROUND.split())
_FILE_NAME: Final = re.compile(r"[^\s/\\]+\.\w{1,5}")
_NAMESPACE: Final = re.compile(r"https?://www\.w3\.org/[\w/.#-]*")  # the name of a format, which nobody opens
_PLACE: Final = re.compile(r"://|^[/~]|\.\.[/\\]|^file:")


def is_calm(code: str, said: Said) -> bool:
    """Whether it imports only what computes, and every file in it was named or is called after one that was."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(_harmless(node, said) for node in ast.walk(tree))


def _harmless(node: ast.AST, said: Said) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom():
            return all(name.partition(".")[0] in _LIBRARIES for name in _imported(node))
        case ast.Name(id=name):
            return name not in _WILD and not name.startswith("__")
        case ast.alias(name=name):
            return not any(part.startswith("_") or part in _WAYS_OUT for part in name.split("."))
        case ast.Attribute(attr=name):
            return not name.startswith("_") and name not in _WAYS_OUT
        case ast.Call(func=ast.Name(id="open"), args=[ast.Constant(value=str()), *_]):
            return True  # the name itself is looked at where it stands
        case ast.Call(func=ast.Name(id="open")):
            return False
        case ast.Constant(value=str(text)):
            return _names_nothing_else(text, said)
        case _:
            return True


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        yield node.module or "."
    else:
        yield from (alias.name for alias in node.names)


def _names_nothing_else(text: str, said: Said) -> bool:
    """Whether the text is no place, and no file but one that was named or the same under another ending."""
    if _PLACE.search(_NAMESPACE.sub("", text)):
        return False
    if not _FILE_NAME.fullmatch(basename(text)):
        return True
    stems = {name.rpartition(".")[0] for name in said.files}
    return said.path(text) or any(stem and stem in basename(text).casefold() for stem in stems)
