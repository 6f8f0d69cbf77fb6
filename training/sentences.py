"""Makes sentences from the phrases: slots filled, orders wrapped, some words misspelt; the same from the same seed."""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import cast

from annabelle.core.tools import JsonObject
from annabelle.language.phrases import (
    EARLIER,
    MEANS,
    NAMED,
    NTH,
    SLOT,
    FollowUp,
    NoTool,
    PhraseBook,
    Sentence,
    ToolPhraseFile,
)

ORDINALS = (
    (("first", "1st", "top"), 0),
    (("second", "2nd"), 1),
    (("third", "3rd"), 2),
    (("fourth", "4th"), 3),
    (("last", "last", "bottom", "final"), -1),
    (("last but one", "second to last"), -2),
)
_WORDING: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "wording.toml").read_text(encoding="utf-8"))
_MOST_DEPTH = 4
_TRIES = 12
"""For a follow-up, to find an earlier message that says what it takes over."""
UNRELATED = 0.25
"""The share of plain requests that come after something else."""
SAME_TOOL = 0.2
"""How often that was a request for the same tool, of which nothing is taken over."""
MIDDLE = 0.15
"""How often the middle one is meant, where there is one."""
DENIED = 0.06
"""For each bare order, how often it is also forbidden."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier message, the call it led to and what was answered."""

    user: str
    answer: str
    tool: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class Filled:
    """A slot's text, and the value it stands for."""

    text: str
    value: str

    @property
    def is_span(self) -> bool:
        return self.text == self.value


@dataclass(frozen=True, slots=True)
class Row:
    user: str
    tool: str | None
    arguments: JsonObject = field(default_factory=dict[str, object])
    answer: str = ""
    before: Exchange | None = None
    phrase: Sentence = field(default_factory=lambda: Sentence(""))
    slots: Mapping[str, Filled] = field(default_factory=dict[str, Filled])
    """What filled those of the phrase."""


class SentenceMaker:
    def __init__(self, book: PhraseBook, schemas: Mapping[str, JsonObject], seed: int) -> None:
        self._book, self._schemas, self._draw = book, schemas, random.Random(seed)
        self._tools = sorted({tool for file in book.files for tool in file.tools})

    def rows(self, per_phrase: int = 9, per_follow_up: int = 8, per_talk: int = 15) -> Iterator[Row]:
        """Sentences of every tool, of following up, and of what wants no tool; each phrase equally often."""
        for file in self._book.files:
            for tool, told in file.tools.items():
                for phrase in told.phrases * per_phrase:
                    yield self._after_something_else(self._row(file, tool, phrase))
                    if phrase.startswith("!") and self._draw.random() < DENIED:
                        yield self._after_something_else(self._denial(file, phrase))
                for follow_up in told.follow_ups * per_follow_up:
                    tried = (self._follow_up(file, tool, follow_up) for _ in range(_TRIES))
                    yield from islice(filter(None, tried), 1)
            for entry in file.no_tool * per_talk:
                yield self._after_something_else(self._talk(file, entry))

    def _after_something_else(self, row: Row) -> Row:
        """Sometimes with an exchange before it that it has nothing to do with, as in any longer chat."""
        if row.before is not None or self._draw.random() > UNRELATED:
            return row
        same = row.tool is not None and self._draw.random() < SAME_TOOL
        first = self._first(cast("str", row.tool) if same else self._draw.choice(self._tools))
        if first is None or first.tool is None:
            return row
        return replace(row, before=self._exchange(first, first.tool))

    def _exchange(self, first: Row, tool: str) -> Exchange:
        """A message and its answer, which often says again what was asked for."""
        told = [str(value) for value in first.arguments.values()]
        self._draw.shuffle(told)
        answer = self._draw.choice(_WORDING["answers"]).replace("{}", ", ".join(told))
        return Exchange(first.user, answer, tool, first.arguments)

    def _show(self, items: Sequence[str]) -> str:
        """Items as tools and people show them: in lines or in one sentence, some with details behind them."""
        if self._draw.random() < 0.25:
            return self._draw.choice(_WORDING["sentences"]).replace("{}", ", ".join(items))
        detail = self._draw.choice(_WORDING["details"])
        mark = self._draw.choice(("{}. {}", "{}) {}", "- {1}", "{1}", "[ ] {1}"))
        lines = [mark.format(place, one) + detail for place, one in enumerate(items, 1)]
        return "\n".join([*([self._draw.choice(_WORDING["heads"])] if self._draw.random() < 0.3 else []), *lines])

    def _talk(self, file: ToolPhraseFile, entry: NoTool) -> Row:
        slots: dict[str, Filled] = {}
        text = self._say(file, Sentence.parse(entry.say), slots)
        first = self._first(entry.after) if entry.after else None
        answer = SLOT.sub(lambda found: slots[found[1]].text, entry.answer)
        before = None if first is None else self._exchange(first, entry.after)
        return Row(text, None, answer=answer, before=before)

    def _denial(self, file: ToolPhraseFile, phrase: str) -> Row:
        """An order that is forbidden, which wants no tool."""
        order = Sentence.parse(phrase).text.rstrip("?.!")
        denial = self._draw.choice(_WORDING["denials"]).replace("{}", order)
        return Row(self._say(file, Sentence(denial), {}), None, answer=self._draw.choice(_WORDING["refusals"]))

    def _row(self, file: ToolPhraseFile, tool: str, phrase: str) -> Row:
        sentence, slots = Sentence.parse(phrase), dict[str, Filled]()
        text = self._say(file, sentence, slots)
        return Row(text, tool, self._arguments(tool, sentence, slots), phrase=sentence, slots=slots)

    def _follow_up(self, file: ToolPhraseFile, tool: str, entry: FollowUp) -> Row | None:
        """A row with an exchange before it, whose call and answer the message refers to."""
        first = self._first(entry.after)
        if first is None:
            return None
        sentence, slots = Sentence.parse(entry.say), dict[str, Filled]()
        before = self._exchange(first, entry.after)
        if entry.items:
            shown = [self._value(file, entry.items) for _ in range(self._draw.randint(2, 5))]
            before = replace(before, answer=self._show([one.text for one in shown]))
            for name, kind in sentence.slots():
                if kind in (NTH, NAMED):
                    slots[name] = self._pick(shown, sentence.text, name, kind)
        elif entry.answer:
            before = replace(before, answer=self._fill(file, Sentence(entry.answer), slots))
        text = self._say(file, sentence, slots)
        try:
            arguments = self._mean(tool, entry, sentence, slots, first)
        except KeyError:
            return None  # the earlier sentence did not say it
        return Row(text, tool, arguments, before=before)

    def _mean(
        self, tool: str, entry: FollowUp, sentence: Sentence, slots: Mapping[str, Filled], first: Row
    ) -> JsonObject:
        """The arguments of a follow-up; KeyError if the earlier call lacks what is taken over."""
        known = cast("dict[str, JsonObject]", self._schemas[tool].get("properties", {}))
        said = {name: slots[name] for name, _ in sentence.slots()}
        if tool == entry.after and not sentence.given and not said.keys() <= known.keys():
            if not said.keys() <= first.slots.keys():
                raise KeyError(tool)
            return self._arguments(tool, first.phrase, {**first.slots, **said})  # the earlier call, in part changed
        own = self._arguments(tool, sentence, slots, first.arguments)
        keep = entry.keep if entry.keep is not None else {name: name for name in first.arguments if name in known}
        kept = {name: first.arguments[source] for name, source in keep.items() if name not in own}
        return {name: typed_value(v, known[name]) if isinstance(v, str) else v for name, v in kept.items()} | own

    def _first(self, tool: str) -> Row | None:
        """An earlier message that called this tool."""
        known = self._book.phrases(tool)
        if not known:
            return None
        file, phrase = self._draw.choice(known)
        return self._row(file, tool, phrase)

    def _pick(self, shown: Sequence[Filled], text: str, name: str, kind: str) -> Filled:
        """One of the items, by its place or by a word that only it has."""
        if kind == NAMED:
            for one in self._draw.sample(list(shown), len(shown)):
                others = " ".join(other.text.lower() for other in shown if other is not one)
                words = [word for word in re.findall(r"[^\W\d_]{3,}", one.text) if word.lower() not in others]
                if words:
                    return Filled(self._draw.choice(words), one.value)
        place = self._draw.randrange(len(shown))
        if re.search(rf"(?i)(#|\b(number|nr|no)\.? ?)\{{{name}:", text):
            return Filled(str(place + 1), shown[place].value)
        if len(shown) % 2 and self._draw.random() < MIDDLE:
            return Filled("middle", shown[len(shown) // 2].value)
        words, place = self._draw.choice([one for one in ORDINALS if -len(shown) <= one[1] < len(shown)])
        return Filled(self._draw.choice(words), shown[place].value)

    def _say(self, file: ToolPhraseFile, sentence: Sentence, slots: dict[str, Filled]) -> str:
        """Fills `slots`, and changes the words around them; what is lower-cased in the text is so in the value."""
        self._fill(file, sentence, slots)
        text = sentence.text
        if sentence.is_order and self._draw.random() < 0.55:
            text = self._draw.choice(_WORDING["wraps"]).replace("{}", text)
        if self._draw.random() < 0.12:
            text = self._draw.choice(_WORDING["openers"]) + text
        if self._draw.random() < 0.1:
            text = text.rstrip("?.!") + self._draw.choice(_WORDING["closers"])
        text = self._change_words(text)
        lower = self._draw.random() < 0.3
        if lower:
            for name, _ in sentence.slots():
                one = slots[name]
                slots[name] = Filled(one.text.lower(), one.value.lower() if one.is_span else one.value)
        filled = SLOT.sub(lambda found: slots[found[1]].text, text)
        if lower:
            return filled.lower()
        return filled[:1].upper() + filled[1:] if self._draw.random() < 0.5 else filled

    def _fill(self, file: ToolPhraseFile, sentence: Sentence, slots: dict[str, Filled]) -> str:
        for name, kind in sentence.slots():
            if name not in slots:
                slots[name] = self._value(file, kind)
        return SLOT.sub(lambda found: slots[found[1]].text, sentence.text)

    def _change_words(self, text: str) -> str:
        draw = self._draw.random
        if draw() < 0.35:
            text = text.rstrip("?.!")
        elif text[-1:].isalnum() and draw() < 0.25:
            text += self._draw.choice([".", "?", "!", "??", "..."])
        if draw() < 0.15:
            text = text.replace("'", "")
        if draw() < 0.18:
            words = text.split(" ")
            places = [n for n, word in enumerate(words) if word.isalpha() and len(word) > 3]
            if places:
                place = self._draw.choice(places)
                words[place] = self._misspell(words[place])
            text = " ".join(words)
        return text

    def _misspell(self, word: str) -> str:
        at = self._draw.randrange(1, len(word) - 1)
        return self._draw.choice(
            [
                word[:at] + word[at + 1 :],
                word[:at] + word[at] + word[at:],
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
                re.sub(r"[aeiou]", lambda _: self._draw.choice("aeiou"), word, count=1),
            ]
        )

    def _value(self, file: ToolPhraseFile, kind: str, depth: int = 0) -> Filled:
        entry = self._draw.choice(self._book.values(file, kind))
        text, arrow, value = entry.partition(MEANS)
        inner = {found[1]: found[2] or found[1] for found in SLOT.finditer(text)} if depth < _MOST_DEPTH else {}
        filled = {name: self._value(file, other, depth + 1) for name, other in inner.items()}
        shown = SLOT.sub(lambda found: filled[found[1]].text, text)
        meant = SLOT.sub(lambda found: filled[found[1]].value, value if arrow else text)
        return Filled(shown, meant)

    def _arguments(
        self, tool: str, sentence: Sentence, slots: Mapping[str, Filled], earlier: JsonObject | None = None
    ) -> JsonObject:
        properties = cast("dict[str, JsonObject]", self._schemas[tool].get("properties", {}))
        found = {name: one.value for name, one in slots.items() if name in properties}
        for name, value in sentence.given.items():
            whole = value if earlier is None else EARLIER.sub(lambda piece: str(earlier[piece[1]]), value)
            found[name] = SLOT.sub(lambda slot: slots[slot[1]].value, whole)
        return {name: typed_value(value, properties.get(name, {})) for name, value in found.items()}


def typed_value(text: str, schema: JsonObject) -> object:
    """Text, unless the schema says that it is something else."""
    choices = cast("list[JsonObject]", [schema, *cast("list[JsonObject]", schema.get("anyOf", []))])
    kinds = {str(part.get("type")) for part in choices}
    if not kinds & {"integer", "number", "boolean", "array", "object"}:
        return json.loads(text) if text[:1] == '"' == text[-1:] and len(text) > 1 else text
    is_number = kinds & {"integer", "number"} and "array" not in kinds
    try:
        parsed = json.loads(text.replace(",", "") if is_number else text)
    except ValueError:
        return [text] if "array" in kinds and "string" not in kinds else text
    if kinds == {"array"} and not isinstance(parsed, list):
        return [parsed]
    is_text = isinstance(parsed, str) or ("string" in kinds and not isinstance(parsed, list | dict))
    return text if is_text else parsed
