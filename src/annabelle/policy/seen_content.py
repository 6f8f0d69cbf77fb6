"""Tool results an agent has seen in a conversation, and the objects in them, by id (POL-04)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final, cast

from annabelle.core.tools import JsonObject
from annabelle.core.trust import Label, Source
from annabelle.policy.person_words import compound, content_words, mailboxes_in, normalize_text
from annabelle.policy.vocabulary import map_meanings

_ID: Final = ("id", "draft_id", "message_id", "event_id", "chat_id", "telegram_chat_id", "path", "series_id", "note",
              "fact_id", "contact_id", "project_id", "filter_id", "label_id", "name", "email", "emails", "username",
              "phone", "phones", "title", "text", "attachment_id")  # fmt: skip
_CALLED: Final = ("name", "title", "subject", "summary", "path", "fact", "text", "list", "label", "username", "company")
_FROM: Final = ("sender", "organizer", "from")
_KINDS: Final = (
    "draft_id",
    "subject",
    "summary",
    "fact",
    "chat_id",
    "title",
    "list",
    "path",
    "email",
    "emails",
    "name",
)
_SAME: Final = 0.9
_MOST: Final = 3_000


@dataclass(frozen=True)
class SeenThing:
    """One object of a result. Content by others cannot change its id or give it the id of another object."""

    tool: str
    fields: JsonObject

    @property
    def ids(self) -> frozenset[str]:
        """The values that can identify it in a call."""
        return frozenset(text for key in _ID if key in self.fields for text in _plain_texts(self.fields[key]))

    @property
    def titles(self) -> tuple[str, ...]:
        return self.texts(*_CALLED)

    @property
    def sender(self) -> str:
        return " ".join(self.texts(*_FROM))

    @cached_property
    def label(self) -> str:
        return " ".join((*self.titles, self.sender))

    @cached_property
    def words(self) -> frozenset[str]:
        """Also a title in one word: German writes the Team meeting as Teammeeting."""
        return content_words(self.label) | {compound(title) for title in self.titles}

    @cached_property
    def word_meanings(self) -> frozenset[str]:
        """Its words, mapped to meanings across languages."""
        return map_meanings(self.words)

    @cached_property
    def sender_meanings(self) -> frozenset[str]:
        return map_meanings(content_words(self.sender))

    @cached_property
    def kind(self) -> str:
        """The field that tells its type: a mail has a subject, a file a path."""
        return next((key for key in _KINDS if key in self.fields), "")

    @cached_property
    def mailboxes(self) -> tuple[tuple[str, str], ...]:
        """Names and addresses of its sender."""
        return tuple(box for text in self.texts(*_FROM) for box in mailboxes_in(text))

    def texts(self, *keys: str) -> tuple[str, ...]:
        return tuple(text for key in keys for text in _texts(self.fields.get(key)))

    def addresses(self, *keys: str) -> tuple[str, ...]:
        """The mail addresses in these fields, without display names: anybody may be called bob@example.com."""
        headers = (text for key in keys for text in _headers(self.fields.get(key)))
        return tuple(address for header in headers for _, address in mailboxes_in(header))


@dataclass(frozen=True)
class SeenResult:
    """One tool result. `this_turn`: since the person's last message. `cut`: too large to load."""

    tool: str
    source: Source | None = None
    trusted: bool = False
    private: bool = False
    labels: tuple[Label, ...] = ()
    text: str = ""
    structured: JsonObject | None = None
    this_turn: bool = True
    failed: bool = False
    cut: bool = False

    @cached_property
    def things(self) -> tuple[SeenThing, ...]:
        """The objects in it. An external server could invent names for ids, so it counts only if the owner vouched for
        it."""
        if self.source == "external" and "vouched" not in self.labels:
            return ()
        return tuple(SeenThing(self.tool, fields) for fields in islice(_objects(self.structured), _MOST))

    @cached_property
    def is_partial(self) -> bool:
        """Whether it holds more than is checked; the rest may be anything."""
        return self.cut or next(islice(_objects(self.structured), _MOST, None), None) is not None

    @cached_property
    def whole(self) -> str:
        """All its text, without the plain text if that only repeats the structure."""
        structured = "\n".join(_texts(self.structured))
        return structured if len(structured) > _SAME * len(self.text) else f"{self.text}\n{structured}"

    @cached_property
    def plain(self) -> str:
        return normalize_text(self.whole)


@dataclass(frozen=True)
class SeenContent:
    """Everything an agent has seen in a conversation, newest first."""

    results: tuple[SeenResult, ...] = ()

    @cached_property
    def things(self) -> tuple[SeenThing, ...]:
        return tuple(islice((thing for result in self.results for thing in result.things), _MOST))

    @cached_property
    def hides_private(self) -> bool:
        """Whether some private content is not checked, so that any text may come from it (TRU-03)."""
        return any(result.is_partial for result in self.results if result.private)

    @cached_property
    def hides_some_now(self) -> bool:
        """Whether some result since the person's last message is not fully checked."""
        return any(result.is_partial for result in self.results if result.this_turn)

    def others_wrote(self, text: str) -> bool:
        """Whether the text may appear in foreign content."""
        return self._hides_foreign or text in self.foreign

    @cached_property
    def _hides_foreign(self) -> bool:
        return any(result.is_partial for result in self.results if not result.trusted)

    @cached_property
    def foreign(self) -> str:
        return "\n".join(result.plain for result in self.results if not result.trusted)

    @cached_property
    def private(self) -> str:
        return "\n".join(result.plain for result in self.results if result.private)

    def find_by_id(self, value: str) -> list[SeenThing]:
        return self._by_id.get(value, []) if value else []

    def is_best_match(self, thing: SeenThing, words: frozenset[str]) -> bool:
        """Whether the words match this thing, and no other of its kind better."""
        score = len(thing.word_meanings & map_meanings(words))
        return score > 0 and score >= self._best_score(thing.kind, words)

    def matches_any(self, thing: SeenThing, words: frozenset[str]) -> bool:
        """Whether the words match anything of its kind."""
        return self._best_score(thing.kind, words) > 0

    def is_from_another_sender(self, thing: SeenThing, words: frozenset[str]) -> bool:
        """Whether the words name the sender of another thing of this kind, rather than of this one."""
        said = map_meanings(words)
        if not thing.sender or thing.sender_meanings & said:
            return False
        return any(other.sender_meanings & said for other in self.things if other.sender and other.kind == thing.kind)

    def _best_score(self, kind: str, words: frozenset[str]) -> int:
        known = self._scores.get((kind, words))
        if known is None:
            said = map_meanings(words)
            scores = (len(thing.word_meanings & said) for thing in self.things if thing.kind == kind)
            known = self._scores[kind, words] = max(scores, default=0)
        return known

    @cached_property
    def _by_id(self) -> dict[str, list[SeenThing]]:
        found: dict[str, list[SeenThing]] = {}
        for thing in self.things:
            for one in thing.ids:
                found.setdefault(one, []).append(thing)
        return found

    @cached_property
    def _scores(self) -> dict[tuple[str, frozenset[str]], int]:
        return {}


def _plain_texts(value: object) -> tuple[str, ...]:
    """The texts of a field itself, without nested objects."""
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return tuple(text for one in values if not isinstance(one, (dict, list)) for text in _texts(one))


def _headers(value: object) -> tuple[str, ...]:
    """The address headers in a value; of a person with name and address, only the address."""
    if isinstance(value, dict):
        return _headers(cast("JsonObject", value).get("email"))
    if isinstance(value, list):
        return tuple(text for one in cast("list[object]", value) for text in _headers(one))
    return (value,) if isinstance(value, str) else ()


def _objects(value: object) -> Iterator[JsonObject]:
    return (cast("JsonObject", one) for one in _walk(value) if isinstance(one, dict))


def _texts(value: object) -> tuple[str, ...]:
    found = (one for one in _walk(value) if isinstance(one, (str, int, float)) and not isinstance(one, bool))
    return tuple(map(str, found))


def _walk(value: object) -> Iterator[object]:
    """Yield a value and everything nested in it, in order."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        yield one
        if isinstance(one, dict):
            waiting.extend(reversed(cast("JsonObject", one).values()))
        elif isinstance(one, list):
            waiting.extend(reversed(cast("list[object]", one)))
