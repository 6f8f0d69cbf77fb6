"""One record: a line of canonical JSON whose hash covers everything in it, the hash of the line before included."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from annabelle.core.tools import JsonObject
from annabelle.store.audit.key import keyed

BEGINNING: Final = "0" * 64
"""What the first record of all follows."""

_NAMES: Final = frozenset({"n", "at", "kind", "trace", "facts", "prev", "hash"})


@dataclass(frozen=True, slots=True)
class Record:
    """What happened, as number `n` of this home."""

    n: int
    at: str
    kind: str
    trace: str | None
    facts: JsonObject
    prev: str
    hash: str = ""

    def sealed(self, key: bytes) -> Record:
        return Record(self.n, self.at, self.kind, self.trace, self.facts, self.prev, self._seal(key))

    def genuine(self, key: bytes) -> bool:
        return self.hash == self._seal(key)

    def line(self) -> bytes:
        return _canonical(self._body() | {"hash": self.hash}) + b"\n"

    def _seal(self, key: bytes) -> str:
        return keyed(key, _canonical(self._body()))

    def _body(self) -> JsonObject:
        return {
            "n": self.n,
            "at": self.at,
            "kind": self.kind,
            "trace": self.trace,
            "facts": self.facts,
            "prev": self.prev,
        }


def parse(line: bytes) -> Record | None:
    """The record a line holds; None for a line that is not written exactly as we write it."""
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    body = cast("JsonObject", found)
    match body:
        case {"n": int(n), "at": str(at), "kind": str(kind), "facts": dict(), "prev": str(prev), "hash": str(digest)}:
            trace = body.get("trace")
            if body.keys() != _NAMES or not (trace is None or isinstance(trace, str)) or not _is_moment(at):
                return None
            # Any other way to write the same is not ours, so that not a byte can be changed unseen.
            record = Record(n, at, kind, trace, cast("JsonObject", body["facts"]), prev, digest)
            return record if record.line() == line else None
        case _:
            return None


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _canonical(body: JsonObject) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
