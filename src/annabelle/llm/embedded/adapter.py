"""The adapter of the packaged weights, and what is known about it: which weights it is for, and values tools are given
without their being said (FST-04).
"""

from __future__ import annotations

import hashlib
import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, cast

from annabelle.core.tools import JsonObject

ADAPTER: Final = Path(__file__).with_name("adapter.gguf")
ABOUT: Final = ADAPTER.with_suffix(".json")
_WINDOW = 1 << 20


def fingerprint(weights: Path) -> str:
    """A hash of the size, beginning, middle and end: of all 100 MB it would take a tenth of a second at every start."""
    size = weights.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with weights.open("rb") as file:
        for start in (0, size // 2, max(0, size - _WINDOW)):
            file.seek(start)
            digest.update(file.read(_WINDOW))
    return digest.hexdigest()


@cache
def about_adapter() -> JsonObject:
    return cast("JsonObject", json.loads(ABOUT.read_text(encoding="utf-8")))


def adapter_for(weights: Path) -> Path | None:
    """The adapter, if it is whole and was trained for these weights."""
    try:
        fits = _fits(ADAPTER, ADAPTER.stat().st_mtime_ns, weights, weights.stat().st_mtime_ns)
    except (OSError, ValueError):
        return None
    return ADAPTER if fits else None


@lru_cache(maxsize=4)
def _fits(adapter: Path, _written: int, weights: Path, _weights_written: int) -> bool:
    """Read anew only where a file was written: a model is chosen for every step of a turn."""
    about = about_adapter()
    return about.get("adapter") == hash_file(adapter) and about.get("weights") == fingerprint(weights)


def hash_file(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
