"""Cleans what a person wrote before a model sees it (LOOP-08)."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Line feed and tab carry meaning; every other control character, and half of a surrogate pair, only confuses or hides.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_ENDS = re.compile(r"\r\n?|\u2028|\u2029")


@dataclass(frozen=True, slots=True)
class CleanInput:
    """The text that goes on, and a sentence for the person when something was cut."""

    text: str
    notice: str | None = None


def clean(text: str, max_chars: int) -> CleanInput:
    """Drop control characters and cut what is too long; model and person are both told of a cut."""
    text = _CONTROL.sub("", _LINE_ENDS.sub("\n", text))
    if len(text) <= max_chars:
        return CleanInput(text)
    cut = len(text) - max_chars
    notice = f"The message was longer than {max_chars} characters; its last {cut} were cut."
    return CleanInput(f"{text[:max_chars]}\n\n[{notice}]", notice)
