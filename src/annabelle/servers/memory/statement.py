"""Reads what one sentence states, so that a new value can replace an old one (MEM-09).

Only sentences that say one thing in one of a few known ways are read. Whatever is richer than that ("lives in Berlin
and works at the bakery") states nothing here, because replacing it would lose the other half. The words and patterns
are in `language/en/memory.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

import annabelle
from annabelle.core.text import fold_with_positions

MAX_SENTENCE_CHARACTERS = 200
_MAX_SUBJECT_WORDS = 5
_MAX_VALUE_WORDS = 8
_WORDS_AFTER = 3


class _RelationWords(BaseModel):
    """One way to state a relation. `{thing}` and `{value}` in its name are taken from the sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    pattern: str
    denies: bool = False
    decides: bool = True


class _StatementWords(BaseModel):
    """The file of one language."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    user_subjects: frozenset[str]
    unclear_subjects: frozenset[str]
    own_subject: re.Pattern[str]
    owners: frozenset[str]
    subject_article: str
    value_article: re.Pattern[str]
    verb_ending: re.Pattern[str]
    full_forms: list[tuple[re.Pattern[str], str]]
    several: str
    too_rich: list[str]
    changed: list[str]
    adverbs: list[str]
    since: re.Pattern[str]
    any_more: re.Pattern[str]
    denied: list[tuple[re.Pattern[str], str]]
    state_verbs: list[str]
    typed_values: list[str]
    same_values: dict[str, str]
    same_verbs: dict[str, str]
    parts: dict[str, str]
    relation: list[_RelationWords]


_FILE = Path(annabelle.__file__).parent / "language" / "en" / "memory.toml"
_WORDS = _StatementWords.model_validate(tomllib.loads(_FILE.read_text(encoding="utf-8")))


def _any_of(words: Iterable[str]) -> str:
    return rf"\b(?:{'|'.join(words)})\b"


def _fill_parts(pattern: str) -> re.Pattern[str]:
    while (filled := re.sub(r"\{([A-Z]+)\}", lambda part: _WORDS.parts[part[1]], pattern)) != pattern:
        pattern = filled
    return re.compile(pattern)


_TOO_RICH = re.compile(rf"{_WORDS.several}|{_any_of(_WORDS.too_rich)}")
_CHANGED = re.compile(_any_of(_WORDS.changed))
_ADVERBS = re.compile(rf"{_any_of(_WORDS.adverbs)},?")
_STATE = re.compile(_any_of(_WORDS.state_verbs))
_TYPED = re.compile("|".join(_WORDS.typed_values))
_RELATIONS = tuple((words, _fill_parts(words.pattern)) for words in _WORDS.relation)


@dataclass(frozen=True, slots=True)
class PlainSentence:
    """The words that are left, whether they are denied, and whether they tell of a change."""

    words: str
    denied: bool
    changed: bool


def simplify_sentence(text: str) -> PlainSentence | None:
    """The sentence without adverbs and short forms; None when it is long or says more than one thing."""
    if len(text) > MAX_SENTENCE_CHARACTERS:
        return None
    words = fold_with_positions(text).text.lower().strip().rstrip(".! ")
    for short, full in _WORDS.full_forms:
        words = short.sub(full, words)
    if _TOO_RICH.search(words):
        return None
    changed = _CHANGED.search(words) is not None
    words = _WORDS.since.sub("", _ADVERBS.sub("", words))
    denied = False
    for denial, rest in _WORDS.denied:
        words, count = denial.subn(rest, words)
        denied = denied or count > 0
    words = " ".join(_WORDS.any_more.sub("", words).split()).rstrip(",")
    return PlainSentence(words, denied, changed or denied)


@dataclass(frozen=True, slots=True)
class Statement:
    """A relation of somebody or something, with its value. Of one key, one value holds at a time."""

    key: str
    value: str
    denied: bool = False
    """It says what does not hold: "no longer", "not", "hates"."""
    decides: bool = True
    """False for what may well be said beside another value: it can be replaced, and replaces nothing."""

    def contradicts(self, other: Statement) -> bool:
        """Whether both cannot hold at once. "Berlin" and "Berlin, Germany" can."""
        if self.key != other.key:
            return False
        mine, theirs = set(self.value.split()), set(other.value.split())
        agree = mine <= theirs or theirs <= mine
        return agree if self.denied != other.denied else not self.denied and not agree

    def replaces(self, other: Statement) -> bool:
        return self.decides and self.contradicts(other)


def read_statement(text: str) -> Statement | None:
    """The one relation a text states, or None when it states none that is known, or more than one."""
    sentence = simplify_sentence(text)
    if sentence is None:
        return None
    for words, pattern in _RELATIONS:
        if (match := pattern.fullmatch(sentence.words)) and (stated := _read_relation(words, match, sentence)):
            return stated
    return None if sentence.denied else _read_typed_value(sentence.words)


def _read_relation(words: _RelationWords, match: re.Match[str], sentence: PlainSentence) -> Statement | None:
    parts = match.groupdict(default="")
    subject, value = _read_subject(parts.get("subject", "")), _clean_value(parts.get("value", ""))
    thing = _clean_value(parts.get("thing", ""))
    if subject is None or not value or "," in thing or len(value.split()) > _MAX_VALUE_WORDS:
        return None
    if "other" in parts:
        thing = " / ".join(sorted((value, _clean_value(parts["other"]))))
    if "verb" in parts:
        stem = _WORDS.verb_ending.sub("", parts["verb"])
        thing = _WORDS.same_verbs.get(stem, stem)
    relation = words.name.format(thing=_WORDS.same_values.get(thing, thing), value=value)
    denied = sentence.denied != words.denies
    return Statement(f"{subject}|{relation}", value, denied, words.decides or sentence.changed)


def _read_subject(written: str) -> str | None:
    """Whose relation it is: "user" for the speaker, None where only the conversation would tell."""
    words = written.strip().removeprefix(_WORDS.subject_article)
    if words in _WORDS.user_subjects:
        return "user"
    words = _WORDS.own_subject.sub("user ", words)
    words = words.replace("'s", "").rstrip("'")
    if not words or len(words.split()) > _MAX_SUBJECT_WORDS or not _WORDS.unclear_subjects.isdisjoint(words.split()):
        return None
    return "user" if words in _WORDS.owners else words


def _clean_value(value: str) -> str:
    value = _WORDS.value_article.sub("", value.strip(" \"'():")).strip(" \"'.")
    return " ".join(re.sub(r"[^\w@.+:/ -]", " ", value).split())


def _read_typed_value(words: str) -> Statement | None:
    """The number or day at the end of a sentence, after a verb of state. The rest of the sentence is its key."""
    state = _STATE.search(words)
    found = [match for match in _TYPED.finditer(words) if state is not None and match.start() >= state.end()]
    if not found:
        return None
    # "on 3 May at 9:30" is one value as well: everything typed after the verb changes together.
    first, last = found[0], found[-1]
    rest = words[last.end() :]
    if len(rest.split()) > _WORDS_AFTER or len(words[: first.start()].split()) < 2:
        return None
    value = words[first.start() : last.end()]
    key = f"{words[: first.start()]}{_TYPED.sub('#', value)}{rest}".strip()
    return Statement(f"…|{key}", value)
