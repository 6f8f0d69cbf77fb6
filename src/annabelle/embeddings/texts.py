"""Texts as a model is given them."""

from __future__ import annotations

_UNSENDABLE = {0: " "}


def cleaned(text: str, longest: int) -> str:
    """At most `longest` characters, without NUL and lone surrogates, which no tokenizer or JSON reader takes."""
    return text[:longest].translate(_UNSENDABLE).encode("utf-8", "replace").decode()


def is_blank(text: str) -> bool:
    """Whether there is nothing in it that could have a meaning."""
    return not text or text.isspace()
