"""What words mean, whatever the language: `Zahnarzt` and `Dentist` are one appointment."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import cast


@lru_cache(maxsize=256)
def meanings(words: frozenset[str]) -> frozenset[str]:
    """Each word, or what it stands for where it is an everyday one."""
    return frozenset(_meaning(word) for word in words)


@lru_cache(maxsize=4096)
def _meaning(word: str) -> str:
    found = _everyday().fullmatch(word)
    return found.lastgroup or word if found else word


@cache
def _everyday() -> re.Pattern[str]:
    text = files(__package__ or __name__).joinpath("meanings.toml").read_text(encoding="utf-8")
    table = cast("dict[str, list[str]]", tomllib.loads(text))
    return re.compile("|".join(f"(?P<{meaning}>{'|'.join(words)})" for meaning, words in table.items()))
