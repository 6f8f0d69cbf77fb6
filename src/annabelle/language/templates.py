"""Sentence templates: messages that are understood word for word, without a model (INT-01).

They stand in `templates.toml` of each language and in `config/phrases.toml` of the home, which is in the person's
hands. A slot takes one clause; where that is in doubt there is no match, and the model decides.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, cast

from annabelle.core.errors import ConfigMistake
from annabelle.core.text import fold_for_search
from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.core.trace import SHOWN_IN_CHAT
from annabelle.language.phrases import SLOT, Sentence, ToolPhraseFile

FILE_NAME: Final = "templates.toml"
STOP: Final = "stop"
"""The table of messages that stop what runs; it is no tool."""
_LONGEST_MESSAGE, _LONGEST_SLOT = 300, 200
_ENDS: Final = " \t\n.!?…,;:¿¡"
_SPLIT: Final = re.compile(r"[.!?;\n]\s|[\n<>{}`]|https?:", re.IGNORECASE)
_SPACE: Final = re.compile(r"\s+")
_ALIKE: Final = 0.75
"""The share of a phrase's own words a message must have to be about the same."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TemplateMatch:
    """The call a message asks for, and the template it matched."""

    tool: str
    arguments: dict[str, str]
    template: str


@dataclass(frozen=True, slots=True)
class _Template:
    tool: str
    sentence: Sentence
    pattern: re.Pattern[str]
    doubtful: frozenset[str]
    unclear: frozenset[str]

    def match(self, text: str) -> TemplateMatch | None:
        found = self.pattern.fullmatch(text)
        if found is None:
            return None
        said = {name: value.strip(_ENDS) for name, value in found.groupdict().items()}
        if not all(map(self._is_one_clause, said.values())):
            return None
        given = {name: SLOT.sub(lambda slot: said[slot[1]], value) for name, value in self.sentence.given.items()}
        values = said | given
        return TemplateMatch(self.tool, {name: values[name] for name in self.arguments()}, self.sentence.text)

    def arguments(self) -> list[str]:
        """The names of the arguments that it gives: slots, unless they are part of a given value, and given ones."""
        given = self.sentence.given
        used = {slot for value in given.values() for slot, _ in _slots(value)}
        slots = [slot for slot, _ in self.sentence.slots()]
        return [*(slot for slot in slots if slot not in used and slot not in given), *given]

    def _is_one_clause(self, text: str) -> bool:
        words = text.casefold().split()
        if not words or len(text) > _LONGEST_SLOT or _SPLIT.search(text):
            return False
        return (
            not self.doubtful.intersection(word.strip(_ENDS) for word in words) and " ".join(words) not in self.unclear
        )


def _slots(text: str) -> list[tuple[str, str]]:
    return Sentence(text).slots()


class Templates:
    """All templates of one or more files; a message is held against each."""

    def __init__(self, templates: Sequence[_Template]) -> None:
        self._templates = templates

    @classmethod
    def read(cls, files: Iterable[Path]) -> Templates:
        return cls([template for file in files for template in _read_templates(ToolPhraseFile.read(file))])

    def find_mistakes(self, tools: Sequence[ToolSpec]) -> Iterator[str]:
        """A sentence for each phrase that gives a tool an argument that it does not have."""
        known = {
            tool.name: cast("JsonObject", tool.input_schema.get("properties") or {})
            for tool in tools
            if tool.input_schema.get("additionalProperties") is False
        }
        for one in self._templates:
            wrong = [name for name in one.arguments() if name not in known.get(one.tool, one.arguments())]
            if wrong:
                yield f"“{one.sentence.text}” gives {one.tool} {', '.join(wrong)}, which it does not take."

    def match(self, text: str) -> TemplateMatch | None:
        """The one call that the whole message asks for; None where there is none, or more than one."""
        if len(text) > _LONGEST_MESSAGE:
            return None
        said = _SPACE.sub(" ", text).strip(_ENDS)
        found = [match for one in self._templates if (match := one.match(said)) is not None]
        calls = {(match.tool, *sorted(match.arguments.items())) for match in found}
        return found[0] if len(calls) == 1 else None

    def is_stop(self, text: str) -> bool:
        match = self.match(text)
        return match is not None and match.tool == STOP

    def alike(self, text: str) -> list[str]:
        """The tools of templates that have most of their words in the message, best first."""
        words = set(fold_for_search(text).split())
        shares = {one.tool: 0.0 for one in self._templates}
        for one in self._templates:
            own = fold_for_search(SLOT.sub(" ", one.sentence.text)).split()
            shares[one.tool] = max(shares[one.tool], sum(word in words for word in own) / len(own) if own else 0.0)
        return sorted((tool for tool, share in shares.items() if share >= _ALIKE), key=lambda tool: -shares[tool])


def _read_templates(file: ToolPhraseFile) -> list[_Template]:
    polite = "|".join(_to_pattern(word) for word in file.values.get("polite", []))
    around = f"(?:(?:{polite})[ ,]+)*" if polite else "", f"(?:[ ,]+(?:{polite}))*" if polite else ""
    doubtful = frozenset(word.casefold() for word in file.values.get("joiner", []))
    unclear = frozenset(word.casefold() for word in file.values.get("unclear", []))
    templates: list[_Template] = []
    for tool, known in file.tools.items():
        for phrase in known.phrases:
            sentence = Sentence.parse(phrase)
            pattern = re.compile(around[0] + _to_pattern(sentence.text.strip(_ENDS)) + around[1], re.IGNORECASE)
            templates.append(_Template(tool, sentence, pattern, doubtful, unclear))
    return templates


def _to_pattern(text: str) -> str:
    """The words as they are, with any blanks between them, and every slot as a group."""
    pieces: list[str] = []
    position = 0
    for slot in SLOT.finditer(text):
        pieces += [re.escape(text[position : slot.start()]), f"(?P<{slot[1]}>.+?)"]
        position = slot.end()
    return "".join([*pieces, re.escape(text[position:])]).replace("'", "['’]")


@cache
def packaged_templates() -> Templates:
    """The templates of every language."""
    return Templates.read(sorted(Path(__file__).parent.glob(f"*/{FILE_NAME}")))


@dataclass(slots=True)
class OwnTemplates:
    """The phrases of the home's own file, read again when it changes. A damaged file keeps the last good one."""

    file: Path
    _templates: Templates = field(default_factory=lambda: Templates([]))
    _seen: tuple[int, int] | None = None
    _checked: tuple[int, int] | None = None

    def load(self, tools: Sequence[ToolSpec] = ()) -> Templates:
        """The phrases. What is wrong with them is told once; `tools` are those that they may name."""
        try:
            state = self.file.stat()
            now = (state.st_mtime_ns, state.st_size)
        except OSError:
            self._templates, self._seen = Templates([]), None
            return self._templates
        if now != self._seen:
            self._seen = now
            try:
                self._templates = Templates.read([self.file])
            except (ConfigMistake, re.error) as error:
                reason = error.message if isinstance(error, ConfigMistake) else f"{self.file.name}: {error}."
                _log.warning("%s What it said before holds.", reason, extra=SHOWN_IN_CHAT)
        if tools and now != self._checked:
            self._checked = now
            for mistake in self._templates.find_mistakes(tools):
                _log.warning("%s: %s", self.file.name, mistake, extra=SHOWN_IN_CHAT)
        return self._templates
