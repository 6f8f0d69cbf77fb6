"""Encodings in which a program may repeat a secret: escaped, quoted, base64, or one of its lines."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

_LONG_LINE = 8
_LONG_ENOUGH_FOR_BASE64 = 6


def encodings_of(value: str) -> Iterator[str]:
    """Yields every text from which the value could be recovered, possibly with duplicates."""
    lines = [line.strip() for line in value.splitlines()]
    for text in {value, value.strip(), *(line for line in lines if len(line) >= _LONG_LINE)} - {""}:
        yield text
        yield json.dumps(text)[1:-1]
        yield json.dumps(text, ensure_ascii=False)[1:-1]
        yield json.dumps(json.dumps(text))[3:-3]
        yield html.escape(text)
        yield html.escape(text, quote=False)
        blob = text.encode(errors="surrogatepass")  # a lone surrogate must not raise here
        yield quote(blob)
        yield quote(blob, safe="")
        yield quote_plus(blob)
        if len(blob) >= _LONG_ENOUGH_FOR_BASE64:
            yield from _base64_encodings(blob)


def _base64_encodings(blob: bytes) -> Iterator[str]:
    """Yields the base64 groups that the value alone determines, for each of its three alignments."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + blob).decode()
        whole = encoded[4 if before else 0 : len(encoded) - (4 if (before + len(blob)) % 3 else 0)]
        if whole:
            yield whole
            yield whole.replace("+", "-").replace("/", "_")
