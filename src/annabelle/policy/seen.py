"""What an agent has seen in a conversation: results, and the things in them by their ids (POL-04)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, cast

from annabelle.core.tools import JsonObject
from annabelle.core.trust import Label, Source
from annabelle.policy.naming import content_words

_ID: Final = ("id", "draft_id", "message_id", "event_id", "chat_id", "telegram_chat_id", "path", "series_id", "note",
              "fact_id", "contact_id", "project_id", "filter_id", "label_id", "name", "email", "emails", "username",
              "phone", "phones", "title", "text", "attachment_id")  # fmt: skip
_CALLED: Final = ("name", "title", "subject", "summary", "path", "fact", "text", "list", "label", "username", "company")
_FROM: Final = ("sender", "organizer", "from")
_DEEPEST: Final = 12
_MOST: Final = 5_000


@dataclass(frozen=True, slots=True)
class Thing:
    """One object of a result. What others wrote in it can not change its id, nor give it another's."""

    tool: str
    fields: JsonObject
    trusted: bool
    this_turn: bool

    def has_id(self, value: str) -> bool:
        return any(value in _plain_texts(self.fields.get(key)) for key in _ID)

    @property
    def called(self) -> tuple[str, ...]:
        """Its titles and names."""
        return tuple(text for key in _CALLED for text in _texts(self.fields.get(key)))

    @property
    def sender(self) -> str:
        return " ".join(text for key in _FROM for text in _texts(self.fields.get(key)))

    @property
    def label(self) -> str:
        return " ".join((*self.called, self.sender))

    def texts(self, *keys: str) -> tuple[str, ...]:
        return tuple(text for key in keys for text in _texts(self.fields.get(key)))


@dataclass(frozen=True)
class SeenResult:
    """One result of a tool. `this_turn`: it came back since the person's last message."""

    tool: str
    source: Source | None = None
    trusted: bool = False
    private: bool = False
    labels: tuple[Label, ...] = ()
    text: str = ""
    structured: JsonObject | None = None
    this_turn: bool = True
    failed: bool = False

    @cached_property
    def things(self) -> tuple[Thing, ...]:
        return tuple(Thing(self.tool, fields, self.trusted, self.this_turn) for fields in _objects(self.structured))

    @cached_property
    def whole(self) -> str:
        """All there is to read in it."""
        return "\n".join((self.text, *_texts(self.structured)))


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything an agent has seen in a conversation, newest first."""

    results: tuple[SeenResult, ...] = field(default=())

    def things(self) -> Iterator[Thing]:
        for result in self.results:
            yield from result.things

    def of_id(self, value: str) -> list[Thing]:
        """The things this id may stand for."""
        return [thing for thing in self.things() if thing.has_id(value)] if value else []

    def holding(self, text: str) -> list[SeenResult]:
        """The results in which this text stands."""
        return [result for result in self.results if text in result.whole]


def siblings(thing: Thing, things: Iterable[Thing]) -> list[Thing]:
    """The things of the same shape: other mails beside a mail."""
    shape = _shape(thing)
    return [other for other in things if shape & _shape(other)]


def _shape(thing: Thing) -> frozenset[str]:
    keys = {"subject", "summary", "title", "fact", "path", "draft_id", "chat_id", "list"} & thing.fields.keys()
    return frozenset(keys)


def best_named(thing: Thing, others: Sequence[Thing], words: frozenset[str]) -> bool:
    """Whether what was said fits this thing, and none of the others better."""
    score = len(content_words(thing.label) & words)
    return score > 0 and all(len(content_words(other.label) & words) <= score for other in others)


def _plain_texts(value: object) -> tuple[str, ...]:
    """What stands in a field itself, rather than in objects inside of it."""
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return tuple(text for one in values if not isinstance(one, (dict, list)) for text in _texts(one))


def _objects(value: object, depth: int = 0) -> Iterator[JsonObject]:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        fields = cast("JsonObject", value)
        yield fields
        for one in fields.values():
            yield from _objects(one, depth + 1)
    elif isinstance(value, list):
        for one in cast("list[object]", value)[:_MOST]:
            yield from _objects(one, depth + 1)


def _texts(value: object, depth: int = 0) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, bool) or value is None or depth > _DEEPEST:
        return ()
    if isinstance(value, (int, float)):
        return (str(value),)
    if isinstance(value, dict):
        return tuple(text for one in cast("JsonObject", value).values() for text in _texts(one, depth + 1))
    if isinstance(value, list):
        return tuple(text for one in cast("list[object]", value) for text in _texts(one, depth + 1))
    return ()
