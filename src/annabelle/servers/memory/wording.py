"""Short texts of people and models, as they may be kept: cleaned, bounded, and without secrets."""

from __future__ import annotations

from typing import Annotated
from unicodedata import category

from pydantic import AfterValidator, Field

from annabelle.core.memory import Trust
from annabelle.core.tools import JsonObject
from annabelle.servers.memory.safety import refuse_secret


def cleaned(text: str) -> str:
    """Text without control characters and halves of characters; line breaks stay."""
    if text.isprintable():  # most are
        return text.strip()
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\r\n", "\n")
    return "".join(one for one in whole if one in "\n\t" or category(one) != "Cc").strip()


def one_line(text: str) -> str:
    """Text with every white space made one space."""
    return " ".join(cleaned(text).split())


def shortened(text: str, most: int) -> str:
    """Text of at most so many characters; what was cut off shows as …"""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _required(text: str) -> str:
    if not text:
        raise ValueError("it has no letters in it")
    return text


def refuse_secrets(what: str, values: JsonObject) -> None:
    """None of these fields may hold a secret; the first that does is named."""
    for field, text in values.items():
        if isinstance(text, str) and text:
            refuse_secret(text, what=what, field=field)


def given(**values: object) -> JsonObject:
    """The arguments that were given; an empty text removes what was there."""
    return {name: value if value != "" else None for name, value in values.items() if value is not None}


def trust_of(*labels: str) -> Trust:
    """How far something may be trusted: as little as the least of what is in it."""
    return "untrusted" if "untrusted" in labels else "trusted"


Name = Annotated[str, Field(max_length=200), AfterValidator(one_line), AfterValidator(_required)]
Label = Annotated[str, Field(max_length=200), AfterValidator(one_line)]
Notes = Annotated[str, Field(max_length=4000), AfterValidator(cleaned)]
RowId = Annotated[int, Field(ge=1, le=2**53)]
