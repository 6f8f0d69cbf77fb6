"""Words people use for the things tools work with, and what words mean across languages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, cast

# A path or URL names one thing, whatever words it contains.
_NAME: Final = re.compile(r"(?<!\S)\S*(?:[@/\\]|\.\w)\S*")
_MANY: Final = re.compile(
    r"\b(?:all|every|everything|each|inbox|unread|mails|emails|e-mails|messages|newsletters|files|documents|notes|events|"
    r"meetings|appointments|chats|overview|digest|alle|alles|jede\w*|nachrichten|dateien|termine|tous|toutes|tout|chaque|"
    r"fichiers|todos|todas|todo|cada|mensajes|archivos|wszystkie|wszystko|każd\w*|maile|pliki)\b"
)
_NEWS: Final = re.compile(
    r"\b(?:latest|newest|recent|new|any|which|last|day|week|today|tomorrow|morning|neu\w*|letzte\w*|heute|morgen|"
    r"derni\w*|nouve\w*|aujourd'hui|demain|últim\w*|nuev\w*|hoy|mañana|now\w*|ostatni\w*|dziś|jutro)\b"
)
_ALL: Final = re.compile(
    r"\b(?:all|every|everything|each|both|entire|whole|alle|alles|jede\w*|ganze\w*|tous|toutes|tout|chaque|todos|todas|"
    r"todo|cada|wszystkie|wszystko|każd\w*|empty|clear|leere?n?|vide|vacía|wyczyść)\b"
)


def mentions_any(text: str, groups: Iterable[str]) -> bool:
    return any(_mentions_group(text.lower(), group) for group in groups)


@lru_cache(maxsize=1024)
def _mentions_group(text: str, group: str) -> bool:
    return _noun_patterns()[group].search(text) is not None


@cache
def _noun_patterns() -> dict[str, re.Pattern[str]]:
    text = files(__package__ or __name__).joinpath("nouns.toml").read_text(encoding="utf-8")
    groups = cast("dict[str, list[str]]", tomllib.loads(text))
    return {group: re.compile(rf"(?<!\w)(?:{'|'.join(nouns)})(?!\w)") for group, nouns in groups.items()}


def speaks_of_many(text: str) -> bool:
    """Whether the text means a kind of thing rather than one: `my unread mails`, not `the mail from Ann`."""
    return _MANY.search(_NAME.sub(" ", text.lower())) is not None


def speaks_of_news(text: str) -> bool:
    """Whether the text means whatever is new or of some day."""
    return _NEWS.search(_NAME.sub(" ", text.lower())) is not None


def says_all(text: str) -> bool:
    return _ALL.search(_NAME.sub(" ", text.lower())) is not None


@lru_cache(maxsize=256)
def map_meanings(words: frozenset[str]) -> frozenset[str]:
    """Map each everyday word to its meaning; other words stay."""
    return frozenset(_meaning(word) for word in words)


@lru_cache(maxsize=4096)
def _meaning(word: str) -> str:
    found = _meaning_pattern().fullmatch(word)
    return found.lastgroup or word if found else word


@cache
def _meaning_pattern() -> re.Pattern[str]:
    text = files(__package__ or __name__).joinpath("meanings.toml").read_text(encoding="utf-8")
    table = cast("dict[str, list[str]]", tomllib.loads(text))
    return re.compile("|".join(f"(?P<{meaning}>{'|'.join(words)})" for meaning, words in table.items()))
