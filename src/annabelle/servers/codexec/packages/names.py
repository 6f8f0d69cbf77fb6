"""What may be called a package: a name with a version, and nothing that a package manager would read as more."""

from __future__ import annotations

import re

from annabelle.core.errors import InvalidArguments
from annabelle.servers.codexec.languages import SessionLanguage

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_BOUND = r"(?:==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9][A-Za-z0-9.!+*_-]*"
_PYTHON = re.compile(rf"{_NAME}(?:\[{_NAME}(?:,\s*{_NAME})*\])?(?:\s*{_BOUND}(?:\s*,\s*{_BOUND})*)?", re.ASCII)
_PART = r"[a-z0-9][a-z0-9._~-]*"
_NODE = re.compile(rf"(?:@{_PART}/)?{_PART}(?:@[\^~]?[A-Za-z0-9][A-Za-z0-9.+-]*)?", re.ASCII)

MAX_CHARS = 200


def checked(language: SessionLanguage, package: str, field: str = "package") -> str:
    """The package as it goes to the package manager; options, addresses and paths are refused."""
    wanted = package.strip()
    pattern, example = (_PYTHON, "requests==2.32.0") if language == "python" else (_NODE, "lodash@4.17.21")
    if len(wanted) > MAX_CHARS or pattern.fullmatch(wanted) is None:
        raise InvalidArguments(
            f"{wanted[:100]!r} is not the name of a package.",
            hint=f"Give a name with or without a version, as {example}; no options, addresses or paths.",
            field=field,
        )
    return wanted
