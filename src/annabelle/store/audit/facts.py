"""What may stand in a record: names, numbers and fingerprints. Content never does, whoever hands it in."""

from __future__ import annotations

import json
import math
from typing import Final, cast

from annabelle.core.redact import Redactor
from annabelle.core.tools import JsonObject
from annabelle.store.audit.key import SHORT, keyed

_LONGEST: Final = 200
_MOST: Final = 50
_DEEPEST: Final = 4
_LARGEST: Final = 2**63
# Fields that hold people's words or what tools were given: of these a record keeps a fingerprint and the length.
_CONTENT: Final = frozenset(
    {"arguments", "content", "explanation", "message_text", "note", "reason", "reasons", "result", "snippet", "text"}
    | {"texts", "words"}
)
# A plain hash of a short text can be guessed and tried, so it is keyed once more.
_FINGERPRINTS: Final = ("hash", "sha256", "digest")


class Cleaner:
    """Makes facts fit to be kept for years."""

    def __init__(self, key: bytes, redact: Redactor) -> None:
        self._key, self._redact = key, redact

    def __call__(self, facts: JsonObject) -> JsonObject:
        try:
            return self._clean(facts)
        except RecursionError:
            # Too deep to be looked through. Nobody may keep the rest out of the record by that.
            return {name: value for one in facts.items() for name, value in self._alone(*one).items()}

    def _clean(self, facts: JsonObject) -> JsonObject:
        redacted = cast("JsonObject", self._redact.data(facts))
        return {name[:_LONGEST]: self._fact(name, value, 1) for name, value in redacted.items()}

    def _alone(self, name: str, value: object) -> JsonObject:
        try:
            return self._clean({name: value})
        except RecursionError:
            return {name[:_LONGEST]: "…"}

    def fingerprint(self, blob: bytes) -> str:
        return keyed(self._key, blob)[:SHORT]

    def _fact(self, name: str, value: object, depth: int) -> object:
        if name in _CONTENT and value is not None:
            blob = value.encode(errors="backslashreplace") if isinstance(value, str) else _bytes_of(value)
            return {"hash": self.fingerprint(blob), "length": len(blob)}
        if isinstance(value, str) and name.endswith(_FINGERPRINTS):
            return self.fingerprint(value.encode(errors="backslashreplace"))
        return self._plain(value, depth)

    def _plain(self, value: object, depth: int) -> object:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value if abs(value) < _LARGEST else "a very large number"
        if isinstance(value, float):
            return round(value, 4) if math.isfinite(value) else str(value)
        if depth > _DEEPEST:
            return "…"
        if isinstance(value, dict):
            items = list(cast("dict[object, object]", value).items())[:_MOST]
            return {str(name)[:_LONGEST]: self._fact(str(name), inner, depth + 1) for name, inner in items}
        if isinstance(value, list | tuple):
            return [self._plain(inner, depth + 1) for inner in cast("list[object]", value)[:_MOST]]
        return str(value)[:_LONGEST]


def _bytes_of(value: object) -> bytes:
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()
    except (TypeError, ValueError, RecursionError):
        return repr(type(value)).encode()
