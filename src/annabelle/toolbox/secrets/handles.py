"""Handles in the arguments of a call, however deep they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from annabelle.core.masked_forms import each_text
from annabelle.core.tools import JsonObject

_SCHEME = "secret://"
_HANDLE = re.compile(r"secret://([a-z0-9][a-z0-9_-]{0,39})/[a-z0-9]{16,64}")


def handles_in(arguments: JsonObject) -> dict[str, str]:
    """Every handle that is named, with the server it came from."""
    found: dict[str, str] = {}

    def look(text: str) -> str:
        if _SCHEME in text:
            found.update((match[0], match[1]) for match in _HANDLE.finditer(text))
        return text

    each_text(arguments, look)
    return found


def with_values(arguments: JsonObject, values: Mapping[str, str]) -> JsonObject:
    """The same arguments with values in place of handles."""

    def put(text: str) -> str:
        return _HANDLE.sub(lambda match: values.get(match[0], match[0]), text) if _SCHEME in text else text

    return cast("JsonObject", each_text(arguments, put))
