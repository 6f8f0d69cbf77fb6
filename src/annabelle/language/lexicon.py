"""Reads the words and phrases of all languages and builds patterns from them.

`de/rules.toml` holds what German says about the topic `rules`. A group of a file is a string of words or a list of
regular expressions; tables nest groups (`verbs.send`). In an expression, `{name}` stands for the group `terms.name` of
the same file, and a line break with its indentation is left out. A language that lacks a file or a group adds nothing:
to add a language is to add a folder.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, cast

_FOLDER: Final = Path(__file__).parent
_FIRST: Final = "en"
_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")
_LINE_BREAK: Final = re.compile(r"\n\s*")
_NOTHING: Final = "(?!)"
"""Matches nowhere."""


@dataclass(frozen=True, slots=True)
class PhraseFile:
    """The file of one language for one topic."""

    path: Path
    table: Mapping[str, object]

    def is_table(self, group: str) -> bool:
        return isinstance(self._find(group), dict)

    def names(self, group: str) -> tuple[str, ...]:
        """The names of the groups in a table, in the order of the file."""
        return tuple(cast("Mapping[str, object]", self._find(group) or {}))

    def phrases(self, group: str) -> tuple[str, ...]:
        """The phrases of a group, with placeholders filled in; none when the language has no such group."""
        return tuple(_PLACEHOLDER.sub(self._fill, phrase) for phrase in self._read(group))

    def alternation(self, group: str) -> str:
        """An expression that matches any phrase of a group."""
        return join_phrases(self.phrases(group))

    def _fill(self, placeholder: re.Match[str]) -> str:
        return self.alternation(f"terms.{placeholder[1]}")

    def _read(self, group: str) -> Iterable[str]:
        found = self._find(group)
        if found is None:
            return ()
        if isinstance(found, str):
            return found.split()
        if isinstance(found, list) and all(isinstance(phrase, str) for phrase in cast("list[object]", found)):
            return [_LINE_BREAK.sub("", phrase) for phrase in cast("list[str]", found)]
        raise ValueError(f"{self.path}: {group} must be a string of words or a list of phrases.")

    def _find(self, group: str) -> object:
        *tables, name = group.split(".")
        table = self.table
        for step in tables:
            inner = table.get(step)
            if not isinstance(inner, dict):
                return None
            table = cast("Mapping[str, object]", inner)
        return table.get(name)


class Lexicon:
    """What all languages say about one topic, English first and the others in alphabetical order."""

    def __init__(self, topic: str, folder: Path = _FOLDER) -> None:
        self.files = tuple(
            PhraseFile(path, tomllib.loads(path.read_text(encoding="utf-8"))) for path in _topic_files(topic, folder)
        )

    def phrases(self, group: str) -> tuple[str, ...]:
        return tuple(phrase for file in self.files for phrase in file.phrases(group))

    def words(self, group: str) -> frozenset[str]:
        return frozenset(self.phrases(group))

    def alternation(self, group: str) -> str:
        """An expression that matches any phrase of a group in any language."""
        return join_phrases(self.phrases(group))

    def whole_words(self, group: str, flags: int = 0) -> re.Pattern[str]:
        """A pattern that finds any phrase of a group between word boundaries."""
        return re.compile(rf"\b{self.alternation(group)}\b", flags)

    def patterns(self, group: str, template: str = "{}", flags: int = 0) -> tuple[re.Pattern[str], ...]:
        """One pattern per phrase, for expressions with named groups. The phrase replaces `{}` in the template."""
        return tuple(re.compile(template.replace("{}", phrase), flags) for phrase in self.phrases(group))


@cache
def load_lexicon(topic: str) -> Lexicon:
    """The packaged words for a topic, read once."""
    return Lexicon(topic)


def join_phrases(phrases: Iterable[str]) -> str:
    return f"(?:{'|'.join(phrases) or _NOTHING})"


def _topic_files(topic: str, folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*/{topic}.toml"), key=lambda path: (path.parent.name != _FIRST, path.parent.name))
