"""Puts handles back in place of values, in whatever shape a tool gives them back."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import TypeVar, cast
from urllib.parse import quote, quote_plus

from annabelle.core.errors import AnnabelleError
from annabelle.core.tools import JsonObject, ToolResult
from annabelle.toolbox.secrets.handles import each_text

E = TypeVar("E", bound=AnnabelleError)

_LONG_LINE = 8
_LONG_ENOUGH_FOR_BASE64 = 6


class Scrubber:
    """Knows values and their handles; what is as it is, escaped, encoded or only a line of it is found."""

    def __init__(self, handles_by_value: Mapping[str, str]) -> None:
        self._handles: dict[str, str] = {}
        for value, handle in handles_by_value.items():
            for shape in _shapes(value):
                self._handles.setdefault(shape, handle)
        longest_first = sorted(self._handles, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def text(self, text: str) -> str:
        return self._pattern.sub(lambda match: self._handles[match[0]], text) if self._handles else text

    def result(self, result: ToolResult) -> ToolResult:
        error = result.error
        if error is not None:
            error = error.model_copy(
                update={
                    "message": self.text(error.message),
                    "hint": self._maybe(error.hint),
                    "field": self._maybe(error.field),
                }
            )
        structured = cast("JsonObject | None", each_text(result.structured, self.text))
        return result.model_copy(update={"text": self.text(result.text), "structured": structured, "error": error})

    def error(self, error: E) -> E:
        """The same error in words without secrets; what led to it is cut off, for a log shows that too."""
        error.message, error.hint, error.field = (
            self.text(error.message),
            self._maybe(error.hint),
            self._maybe(error.field),
        )
        error.args = (error.message,)
        error.__cause__, error.__suppress_context__ = None, True
        return error

    def _maybe(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)


def _shapes(value: str) -> Iterator[str]:
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
            yield from _base64(blob)


def _base64(blob: bytes) -> Iterator[str]:
    """Wherever it stands in what was encoded: the groups it fills alone, for each of the three ways to begin."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + blob).decode()
        whole = encoded[4 if before else 0 : len(encoded) - (4 if (before + len(blob)) % 3 else 0)]
        if whole:
            yield whole
            yield whole.replace("+", "-").replace("/", "_")
