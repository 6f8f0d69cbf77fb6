"""Puts handles back in place of values, in whatever shape a tool gives them back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar, cast

from annabelle.core.errors import AnnabelleError
from annabelle.core.masked_forms import each_text
from annabelle.core.secret_forms import forms
from annabelle.core.tools import JsonObject, ToolResult

E = TypeVar("E", bound=AnnabelleError)


class Scrubber:
    """Knows values and their handles; what is as it is, escaped, encoded or only a line of it is found."""

    def __init__(self, handles_by_value: Mapping[str, str]) -> None:
        self._handles: dict[str, str] = {}
        for value, handle in handles_by_value.items():
            for shape in forms(value):
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
