"""The encodings in which a program may repeat a secret: escaped, quoted, base64, or one line of it."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

_LONG_LINE = 8
_LONG_ENOUGH_FOR_BASE64 = 6


def encodings_of(value: str) -> Iterator[str]:
    """Every text by which the value could be read again; some come twice."""
    lines = [line.strip() for line in value.splitlines()]
    for text in {value, value.strip(), *(line for line in lines if len(line) >= _LONG_LINE)} - {""}:
        yield text
        yield json.dumps(text)[1:-1]
        yield json.dumps(text, ensure_ascii=False)[1:-1]
        yield json.dumps(json.dumps(text))[3:-3]
        yield html.escape(text)
        yield html.escape(text, quote=False)
        blob = text.encode(errors="surrogatepass")  # half a sign has no bytes of its own, and must not be an error here
        yield quote(blob)
        yield quote(blob, safe="")
        yield quote_plus(blob)
        if len(blob) >= _LONG_ENOUGH_FOR_BASE64:
            yield from _base64_encodings(blob)


def _base64_encodings(blob: bytes) -> Iterator[str]:
    """Wherever it stands in what was encoded: the groups it fills alone, for each of the three ways to begin."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + blob).decode()
        whole = encoded[4 if before else 0 : len(encoded) - (4 if (before + len(blob)) % 3 else 0)]
        if whole:
            yield whole
            yield whole.replace("+", "-").replace("/", "_")
