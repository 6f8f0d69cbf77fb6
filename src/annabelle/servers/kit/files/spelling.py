"""Reads a path as someone wrote it, and refuses every spelling that means something else than it shows."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

from annabelle.core.errors import InvalidArguments, NotAllowed

MAX_PATH_CHARS = 4096
MAX_NAME_BYTES = 255

_DECEPTIVE = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks that reorder what a reader sees: `txt.exe` can be made to look like `exe.txt`."""

_SEPARATORS = re.compile(r"[/\\]")
_DECODINGS = 3


def spell(path: str, field: str = "path") -> tuple[bool, tuple[str, ...]]:
    """Whether the path is absolute, and its names. `~` is left to the caller; `.` and empty names are dropped."""
    if len(path) > MAX_PATH_CHARS:
        raise InvalidArguments(f"The path is longer than {MAX_PATH_CHARS} characters.", field=field)
    if "\0" in path:
        raise InvalidArguments("The path contains a NUL byte.", field=field)
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in path) or _DECEPTIVE.search(path):
        raise InvalidArguments("The path contains control characters.", field=field)
    _refuse_climbing(path, field)
    absolute = path.startswith("/")
    # One spelling per name: an accented letter may be written as one character or as two.
    names = tuple(name for name in unicodedata.normalize("NFC", path).split("/") if name not in ("", "."))
    if any(len(name.encode()) > MAX_NAME_BYTES for name in names):
        raise InvalidArguments(f"A name in the path is longer than {MAX_NAME_BYTES} bytes.", field=field)
    return absolute, names


def _refuse_climbing(path: str, field: str) -> None:
    """`..` is never needed, also not percent-encoded once, twice or three times, nor between backslashes."""
    seen = path
    for _ in range(_DECODINGS + 1):
        if any(name.strip() == ".." for name in _SEPARATORS.split(seen)):
            raise NotAllowed(
                "The path contains '..', which is never followed.",
                hint="Give the path from the workspace, or an absolute one.",
                field=field,
            )
        if "\0" in seen:
            raise InvalidArguments("The path contains a NUL byte.", field=field)
        decoded = unquote(seen)
        if decoded == seen:
            return
        seen = decoded


def other_spelling(name: str) -> str | None:
    """The same name in decomposed form, as some systems store it; None when there is only one form."""
    decomposed = unicodedata.normalize("NFD", name)
    return decomposed if decomposed != name else None
