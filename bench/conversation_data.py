"""Conversations with questions, read from files that others wrote: nothing in them is taken for granted."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

_START = datetime(2020, 1, 1, 12, tzinfo=UTC)
_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS = _NAMES.split()
_MONTH = "(" + "|".join(_MONTHS) + r")[a-z]*\.?"
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?:\s+of)?\s+{_MONTH},?\s+(\d{{4}})\b", re.I)
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})\b", re.I)
_NUMBERS = re.compile(r"\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b")
_REVERSED = re.compile(r"\b(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})\b")
_CLOCK = re.compile(r"\b(\d{1,2})(?::(\d\d))?(?::\d\d)?\s*([ap])\.?m\b|\b(\d{1,2}):(\d\d)", re.I)


@dataclass(frozen=True)
class Doc:
    id: str
    session: str
    speaker: str
    said_at: datetime
    text: str


@dataclass(frozen=True)
class Query:
    text: str
    category: str
    gold: set[str]


@dataclass(frozen=True)
class Dialogue:
    file: str
    pool: str
    docs: list[Doc] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)


def read_folder(folder: Path) -> tuple[list[Dialogue], int]:
    """Every dialogue of a folder, and how many questions were left out because nothing of their answer is there."""
    dialogues: list[Dialogue] = []
    left_out = 0
    for path in sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz")]):
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for line in filter(None, map(str.strip, content.decode().split("\n"))):
            row = json.loads(line)
            if not isinstance(row, dict) or not row.get("docs") or not row.get("queries"):
                break  # a file of another kind
            dialogue, missing = _dialogue(path.name.split(".")[0], row)
            left_out += missing
            dialogues.append(dialogue)
    return dialogues, left_out


def _dialogue(file: str, row: dict) -> tuple[Dialogue, int]:
    dialogue = Dialogue(file, str(row.get("pool", "all")))
    last = _START
    for place, doc in enumerate(row["docs"]):
        number = str(doc.get("id", place))
        # What has no date was said right after what came before it.
        last = moment(str(doc.get("date") or "")) or last + timedelta(minutes=1)
        session = number.rsplit(":", 1)[0] if ":" in number else str(doc.get("session", ""))
        dialogue.docs.append(Doc(number, session, str(doc.get("speaker") or ""), last, str(doc.get("text") or "")))
    known = {doc.id for doc in dialogue.docs}
    missing = 0
    for query in row["queries"]:
        gold = known.intersection(map(str, query.get("gold") or ()))
        missing += not gold
        if gold:
            text = str(query.get("query") or query.get("text") or "")
            dialogue.queries.append(Query(text, str(query.get("category", "")), gold))
    return dialogue, missing


def moment(text: str) -> datetime | None:
    """When something was said, as far as the text tells; None when it does not."""
    try:
        parsed = datetime.fromisoformat(text.strip())
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except ValueError:
        pass
    if match := _DAY_FIRST.search(text):
        year, month, day = int(match[3]), _MONTHS.index(match[2].lower()) + 1, int(match[1])
    elif match := _MONTH_FIRST.search(text):
        year, month, day = int(match[3]), _MONTHS.index(match[1].lower()) + 1, int(match[2])
    elif match := _NUMBERS.search(text):
        year, month, day = int(match[1]), int(match[2]), int(match[3])
    elif match := _REVERSED.search(text):
        year, month, day = int(match[3]), int(match[2]), int(match[1])
        if month > 12:
            month, day = day, month
    else:
        return None
    hour, minute = _clock(text.replace(match[0], " "))
    try:
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    except ValueError:
        return None


def _clock(text: str) -> tuple[int, int]:
    match = _CLOCK.search(text)
    if match is None:
        return 12, 0
    if match[3]:
        return int(match[1]) % 12 + (12 if match[3].lower() == "p" else 0), int(match[2] or 0)
    return min(int(match[4]), 23), min(int(match[5]), 59)
