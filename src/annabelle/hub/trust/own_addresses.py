"""The person's own mail addresses, from the accounts they connected."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

from annabelle.core.connections import connection_file
from annabelle.core.home import Home

_KINDS = (("google", "email"), ("mail", "address"))


def own_addresses(home: Home) -> Callable[[], frozenset[str]]:
    """Tells them as they are now. Nothing else is taken from the files; one that can not be read says nothing."""

    def look() -> frozenset[str]:
        found = (_field(connection_file(home, kind), field) for kind, field in _KINDS)
        return frozenset(address.casefold() for address in found if address)

    return look


def _field(file: Path, name: str) -> str | None:
    try:
        kept = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    value = cast("dict[str, object]", kept).get(name) if isinstance(kept, dict) else None
    return value if isinstance(value, str) else None
