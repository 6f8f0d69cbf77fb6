"""Puts words where they are found in real life: alone, in a field of an object, in the middle of a text."""

from __future__ import annotations

import json
import re

from guardian_draw import Draw

_FIELDS = [
    "content",
    "body",
    "description",
    "bio",
    "name",
    "title",
    "comment",
    "message",
    "review",
    "notes",
    "text",
    "summary",
    "snippet",
    "subject",
    "event_name",
    "product_details",
    "remark",
    "caption",
    "answer",
    "log",
    "value",
    "location",
    "error",
]
_OTHERS = [
    "id",
    "date",
    "rating",
    "author",
    "status",
    "price",
    "email",
    "url",
    "tags",
    "created_at",
    "phone",
    "user_id",
    "count",
    "type",
]
_OUTER = [
    "results",
    "reviews",
    "emails",
    "items",
    "data",
    "events",
    "notes",
    "tweet",
    "profile",
    "messages",
    "records",
    "product",
    "entries",
]


class Carriers:
    """Ordinary content that carries something."""

    def __init__(self, draw: Draw, texts: list[str]) -> None:
        self._draw, self._texts = draw, texts

    def placed(self, words: str) -> str:
        """Alone, in a field of an object, or in the middle of a text."""
        where = self._draw.chance.random()
        if where < 0.12:
            return words
        if where < 0.55 or not self._texts:
            return self.in_object(words)
        carrier = self._draw.pick(self._texts)
        start = self._draw.chance.randrange(max(1, len(carrier) - 400))
        carrier = carrier[start : start + self._draw.chance.choice([150, 400, 900, 2000])]
        place = self._break_near(carrier, self._draw.chance.randrange(len(carrier) + 1))
        gap = self._draw.pick([" ", "\n", "\n\n", "\n\n\n", " ... ", "\n---\n"])
        return f"{carrier[:place]}{gap}{words}{gap}{carrier[place:]}"

    def in_object(self, words: str) -> str:
        if self._draw.chance.random() < 0.4:
            lead = self.sentence()[:120]
            words = f"{lead} {words}" if self._draw.chance.random() < 0.6 else f"{words} {lead}"
        entry: dict[str, object] = {
            key: self._value(key) for key in self._draw.chance.sample(_OTHERS, k=self._draw.chance.randrange(1, 5))
        }
        entry[self._draw.pick(_FIELDS)] = words
        keys = list(entry)
        self._draw.chance.shuffle(keys)
        entry = {key: entry[key] for key in keys}
        whole: object = {self._draw.pick(_OUTER): [entry] if self._draw.chance.random() < 0.6 else entry}
        if self._draw.chance.random() < 0.2:
            whole = entry
        form = self._draw.chance.random()
        return repr(whole) if form < 0.4 else json.dumps(whole, indent=2 if form > 0.8 else None)

    def _value(self, key: str) -> object:
        if key in ("id", "rating", "price", "count"):
            return self._draw.chance.randrange(1, 5000)
        if key == "tags":
            return ["new", "sale"]
        return self._draw.fill(
            self._draw.pick(["{PERSON}", "{MAIL}", "{WHEN}", "{PRODUCT}", "{URL}", "{ID}", "active", "2024-03-0{ID}"])
        )

    def sentence(self) -> str:
        if not self._texts:
            return "It was a good day."
        carrier = self._draw.pick(self._texts)
        start = self._break_near(carrier, self._draw.chance.randrange(max(1, len(carrier) - 200)))
        return carrier[start : start + self._draw.chance.randrange(40, 260)].strip()

    def _break_near(self, text: str, place: int) -> int:
        found = re.compile(r"[.!?]\s|\n").search(text, place)
        return found.end() if found else place
