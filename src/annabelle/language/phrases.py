"""Ways people ask for tools, as data: `phrases.toml` beside each server's manifest (FST-02).

A phrase is what a person types. `{argument:list}` is a slot: its text comes from a value list and becomes the argument.
` => name=value; name=value` behind it gives arguments that are meant and not said. `!` in front marks a bare order.
training/README.md describes the files.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from annabelle.core.errors import ConfigMistake

FILE_NAME: Final = "phrases.toml"
NTH: Final = "nth"
NAMED: Final = "named"
"""The lists of slots that pick an item of the earlier answer: "the second one", "the one about the car"."""
SLOT: Final = re.compile(r"\{(\w+)(?::(\w+))?\}")
EARLIER: Final = re.compile(r"<(\w+)>")
"""An argument of the earlier call, in what a follow-up means."""
MEANS: Final = " => "
"""Between what is said and what is meant, in a phrase and in an entry of a value list."""

Text = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FollowUp(_Strict):
    """A second message: `after` names the tool of the first one, `keep` maps arguments of this call to those of that.

    Without `keep`, arguments of the same name are taken over. `items` is the list the earlier answer showed, `answer`
    another earlier answer, whose slots the message may mean.
    """

    say: Text
    after: str
    keep: dict[str, str] | None = None
    items: str = ""
    answer: str = ""


class ToolPhrases(_Strict):
    phrases: list[Text] = Field(default_factory=list)
    follow_ups: list[FollowUp] = Field(default_factory=list[FollowUp])


class NoTool(_Strict):
    """A sentence that wants no tool, and what to answer; `after` names the tool of the message before it."""

    say: Text
    answer: Text
    after: str = ""


class ToolPhraseFile(_Strict):
    tools: dict[str, ToolPhrases] = Field(default_factory=dict[str, ToolPhrases])
    no_tool: list[NoTool] = Field(default_factory=list[NoTool])
    values: dict[str, list[Text]] = Field(default_factory=dict[str, list[Text]])

    @classmethod
    def read(cls, file: Path) -> Self:
        """Tables named after tools, and `no_tool` and `values`; ConfigMistake if it is damaged."""
        try:
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
            rest = {name: tables.pop(name) for name in ("no_tool", "values") if name in tables}
            return cls.model_validate({"tools": tables, **rest})
        except (OSError, ValueError) as error:  # a ValidationError and a TOMLDecodeError are ValueErrors
            raise ConfigMistake(f"{file.name} cannot be read: {_explain(error)}.", field=str(file)) from error


def _explain(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return str(error).rstrip(".")


@dataclass(frozen=True, slots=True)
class Sentence:
    """The text of a phrase with its slots, and the arguments that are meant and not said."""

    text: str
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    is_order: bool = False

    @classmethod
    def parse(cls, phrase: str) -> Self:
        text, _, behind = phrase.partition(MEANS)
        pairs = (pair.partition("=") for pair in behind.split("; ") if pair)
        given = {name.strip(): value.strip() for name, _, value in pairs}
        return cls(text.removeprefix("!").strip(), given, text.startswith("!"))

    def slots(self) -> list[tuple[str, str]]:
        """Names and value lists, in order."""
        return [(found[1], found[2] or found[1]) for found in SLOT.finditer(self.text)]


@dataclass(frozen=True, slots=True)
class PhraseBook:
    """All phrase files together. A list of a server's own is preferred to a shared one of the same name."""

    files: Sequence[ToolPhraseFile]
    shared: Mapping[str, Sequence[str]]

    @classmethod
    def load(cls, files: Iterable[Path]) -> Self:
        read = [ToolPhraseFile.read(file) for file in files]
        return cls(read, {name: values for one in read if not one.tools for name, values in one.values.items()})

    def phrases(self, tool: str) -> list[tuple[ToolPhraseFile, str]]:
        """The phrases of a tool, each with its file; more than one file may have some."""
        return [(file, phrase) for file in self.files if tool in file.tools for phrase in file.tools[tool].phrases]

    def values(self, file: ToolPhraseFile, name: str) -> Sequence[str]:
        """Entries of a value list; KeyError if there is none."""
        return file.values[name] if name in file.values else self.shared[name]
