"""Parses Gmail's search syntax into an IMAP search."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from annabelle.core.errors import InvalidArguments

_TOKEN = re.compile(
    r'(?P<minus>-)?(?:(?P<key>[A-Za-z_0-9]+):)?(?:"(?P<quoted>[^"]*)"|\((?P<group>[^()]*)\)|(?P<word>[^\s"()]+))'
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_AGE = re.compile(r"(\d{1,4})([hdwmy])")
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}
_SIZE = re.compile(r"(\d{1,12})([kKmM]?)[bB]?")
MAX_TERMS = 50


@dataclass(frozen=True, slots=True)
class SearchText:
    """A text to search for, as opposed to a keyword."""

    value: str


Criteria = list["str | int | date | SearchText | Criteria"]
"""IMAP search criteria: keywords, search texts, and groups of both."""

KNOWN = (
    "from:, to:, cc:, bcc:, subject:, has:attachment, is:unread, is:read, is:starred, newer_than:, older_than:, "
    "after:, before:, larger:, smaller:, label:, in:, rfc822msgid:, plain words, OR, and - before a term"
)


@dataclass(frozen=True, slots=True)
class MailQuery:
    """Criteria and folders of a search. No `folders` means everywhere but trash and spam."""

    criteria: Criteria
    folders: tuple[str, ...] = ()
    attachment: bool | None = None
    """Whether a mail must, or must not, have an attachment, which IMAP cannot search for."""
    anywhere: bool = False


def parse_query(text: str, today: date | None = None) -> MailQuery:
    """Unknown operators are errors: a search that ignores some of its terms would mislead."""
    reader = _QueryParser(today or datetime.now(UTC).date())
    for match in _TOKEN.finditer(text):
        reader.add_token(match)
    return reader.build()


class _QueryParser:
    def __init__(self, today: date) -> None:
        self._today = today
        self._terms: list[Criteria] = []
        self._folders: list[str] = []
        self._attachment: bool | None = None
        self._anywhere = False
        self._or = False

    def add_token(self, match: re.Match[str]) -> None:
        key = (match["key"] or "").lower()
        value = next((one for one in (match["quoted"], match["group"], match["word"]) if one is not None), "")
        if not key and match["word"] == "OR":
            self._or = bool(self._terms)
            return
        if not key and match["word"] == "AND":
            return
        value = " ".join(_CONTROL.sub(" ", value).split())
        if not value:
            return
        negated = bool(match["minus"])
        if key in ("in", "label") or (key == "is" and value.lower() in ("inbox", "sent", "draft", "drafts")):
            self._add_folder(value, negated=negated)
        elif key == "has" and value.lower() == "attachment":
            self._attachment = not negated
        else:
            self._add(["NOT", *_as_single(self._term(key, value))] if negated else self._term(key, value))

    def build(self) -> MailQuery:
        criteria: Criteria = []
        for term in self._terms:
            criteria += term
        return MailQuery(criteria or ["ALL"], tuple(self._folders), self._attachment, self._anywhere)

    def _add(self, term: Criteria) -> None:
        if len(self._terms) >= MAX_TERMS:
            raise InvalidArguments(f"The query has more than {MAX_TERMS} terms.", field="query")
        if self._or:
            self._terms[-1] = ["OR", *_as_single(self._terms[-1]), *_as_single(term)]
            self._or = False
        else:
            self._terms.append(term)

    def _add_folder(self, value: str, *, negated: bool) -> None:
        if self._or or negated:
            raise InvalidArguments(
                "This mailbox can not combine folders with OR or leave one out.",
                hint="Search one folder at a time with in:.",
                field="query",
            )
        if value.lower() in ("anywhere", "all"):
            self._anywhere = True
        elif value.lower() in ("unread", "starred"):
            self._add(self._term("is", value))
        else:
            self._folders.append(value)

    def _term(self, key: str, value: str) -> Criteria:
        text = SearchText(value)
        match key:
            case "":
                return ["TEXT", text]
            case "subject":
                return [part for word in value.split() for part in ("SUBJECT", SearchText(word))]
            case "to":
                return ["OR", "TO", text, "CC", text]
            case "rfc822msgid":
                return ["HEADER", "Message-ID", SearchText(value.strip("<>"))]
            case "from" | "cc" | "bcc":
                return [key.upper(), text]
            case "newer_than" | "older_than":
                return [_WORDS[key], _parse_age(value, self._today)]
            case "after" | "newer" | "before" | "older":
                return [_WORDS[key], _parse_day(value)]
            case "larger" | "size" | "smaller":
                return [_WORDS[key], _parse_size(value)]
            case "is" if value.lower() in _STATES:
                return [_STATES[value.lower()]]
            case "is" | "has":
                problem = f"This mailbox does not know {key}:{value[:40]}."
            case _:
                problem = f"This mailbox can not search with {key}:."
        raise InvalidArguments(problem, hint=f"It knows {KNOWN}.", field="query")


def _as_single(term: Criteria) -> Criteria:
    """A term as one operand of OR and NOT."""
    return term if len(term) <= 2 else [term]


_WORDS = {
    "newer_than": "SINCE", "after": "SINCE", "newer": "SINCE", "older_than": "BEFORE", "before": "BEFORE",
    "older": "BEFORE", "larger": "LARGER", "size": "LARGER", "smaller": "SMALLER",
}  # fmt: skip
_STATES = {
    "unread": "UNSEEN", "read": "SEEN", "starred": "FLAGGED", "unstarred": "UNFLAGGED", "answered": "ANSWERED",
}  # fmt: skip


def _parse_age(value: str, today: date) -> date:
    match = _AGE.fullmatch(value.lower())
    if match is None:
        raise InvalidArguments(f"{value[:40]!r} is no age.", hint="Write 12h, 2d, 3w, 6m or 1y.", field="query")
    return today - timedelta(days=int(match[1]) * _DAYS[match[2]])


def _parse_day(value: str) -> date:
    if value.isdecimal() and 9 <= len(value) <= 11:
        return datetime.fromtimestamp(int(value), UTC).date()
    try:
        year, month, day = (int(part) for part in re.split(r"[/.-]", value))
        return date(year, month, day)
    except ValueError as error:
        raise InvalidArguments(f"{value[:40]!r} is no date.", hint="Write 2026/11/30.", field="query") from error


def _parse_size(value: str) -> int:
    match = _SIZE.fullmatch(value)
    if match is None:
        raise InvalidArguments(f"{value[:40]!r} is no size.", hint="Write 500000, 500k or 5M.", field="query")
    return int(match[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[match[2].lower()]
